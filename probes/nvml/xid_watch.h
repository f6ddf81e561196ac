// xid_watch: errors (Xid) that the driver reports of one GPU while something runs on it. Needs no rights on the
// kernel's log.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "probes/nvml/nvml_gpu.h"

namespace assay::nvml {

/// Listens from its making on. `gpu` and its Nvml must outlive it.
class XidWatch {
 public:
  /// Registers with the driver; if it does not take part, nothing is known.
  explicit XidWatch(const NvmlGpu& gpu);

  /// Numbers of the Xids since the last call, in the order reported; nothing if the driver cannot be listened to.
  std::optional<std::vector<int>> take();
  /// Whether registering or listening failed, which a healthy GPU's does not.
  [[nodiscard]] bool failed() const { return told_by(code_) == Availability::failed; }

 private:
  struct Free {
    const nvml_api::Functions* functions;
    void operator()(nvml_api::EventSetTag* set) const { (void)functions->event_set_free(set); }
  };
  const nvml_api::Functions* functions_;
  nvml_api::Return code_ = nvml_api::kFunctionNotFound;
  std::unique_ptr<nvml_api::EventSetTag, Free> set_;
};

}  // namespace assay::nvml
