// gpu_errors: AMD SMI's counters of GPUs' errors, and their rise during a load.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/amd/gpu_facts.h"
#include "probes/core/probe.h"

namespace assay::amd {

/// The condition for probes whose subjects are not single GPUs.
inline constexpr ConditionSpec kGpuErrorsCondition = if_reported(
    "gpu_errors_delta",
    "uncorrected and deferred errors, pages of memory taken out of use, PCIe replays and XGMI errors of all GPUs "
    "of the node while measuring, where AMD SMI counts the errors and replays of all of them");

/// Counts from its making on, without a thread of its own: for loads that must not be disturbed.
class GpuErrors {
 public:
  /// `pci_addresses` as Linux spells them. Where AMD SMI is absent, or does not list a GPU, nothing is known.
  explicit GpuErrors(const std::vector<std::string>& pci_addresses);

  /// Errors of all these GPUs since the making. Nothing if one of them does not report its errors or its replays.
  [[nodiscard]] std::optional<std::int64_t> growth() const;

 private:
  std::vector<AmdGpu> gpus_;
  std::vector<GpuFacts> begin_;
};

}  // namespace assay::amd
