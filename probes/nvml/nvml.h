// nvml: NVIDIA's management library, opened at run time, with every answer typed: available, absent or failed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/nvml/nvml_api.h"

namespace assay::nvml {

/// Result of one question to NVML. Absent: this GPU or driver does not report it (not supported, no permission, no such
/// function); failed is everything else, a lost GPU above all.
enum class Availability { told, absent, failed };

/// Which of them a result of NVML is.
Availability told_by(nvml_api::Return code);

/// One answer. `value` is there exactly when available.
template <class T>
struct Answer {
  std::optional<T> value;
  nvml_api::Return code = nvml_api::kSuccess;

  /// Whether the question failed, which a healthy GPU's never do.
  [[nodiscard]] bool failed() const { return told_by(code) == Availability::failed; }
};

class NvmlGpu;

/// The library, open and initialised for as long as this lives.
class Nvml {
 public:
  /// Opens `library`, a file name or a path; empty or libnvidia-ml.so.1 is default_library(). Throws Skip, naming it
  /// and the cause, when it cannot be opened, when a function that every version has is missing, or when it finds no
  /// working driver of its own version.
  explicit Nvml(const std::string& library = default_library());

  /// The library that is opened where nothing else is said: the environment variable ASSAY_NVML_LIBRARY, else
  /// libnvidia-ml.so.1 in the first folder of ASSAY_LIBRARY_PATH that has it, else by the loader's own search.
  static std::string default_library();

  /// Every GPU that NVML counts, in its order, including those that cannot be queried.
  [[nodiscard]] std::vector<NvmlGpu> gpus() const;
  /// The GPU on the bus at `address` in any spelling ("0000:1B:00.0").
  [[nodiscard]] Answer<NvmlGpu> gpu_at(const std::string& address) const;
  /// The driver's version, as it calls itself.
  [[nodiscard]] std::string driver_version() const { return driver_version_; }
  /// State of confidential computing in the driver: on, devtools (on, and open to debuggers), off or not_reported.
  [[nodiscard]] std::string confidential_computing() const;
  /// The path of the library that is in use, links followed.
  [[nodiscard]] std::string path() const { return path_; }
  /// NVML's words for a result.
  [[nodiscard]] std::string words(nvml_api::Return code) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  struct Shutdown {
    void operator()(nvml_api::Functions* functions) const;
  };
  std::unique_ptr<void, Close> handle_;
  std::unique_ptr<nvml_api::Functions> functions_;
  std::unique_ptr<nvml_api::Functions, Shutdown> initialised_;  // the same functions; gone before they are
  std::string driver_version_;
  std::string path_;
};

/// "00000000:1B:00.0" as Linux spells it: "0000:1b:00.0". Text that is no such address comes back as it is.
std::string pci_address_of(std::string_view bus_id);

/// A remark for conditions: where NVML is absent, "absent: " and the first line of why.
std::string absent_because(std::string_view reason);

}  // namespace assay::nvml
