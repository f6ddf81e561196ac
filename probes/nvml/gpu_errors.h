// gpu_errors: the driver's counters of a GPU's errors, and their rise during a load.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::nvml {

/// Counters of one GPU; each since the driver was loaded, absent if it does not count.
struct ErrorCounts {
  std::optional<std::uint64_t> ecc_corrected, ecc_uncorrected, pcie_replays, nvlink_errors;
  std::optional<std::uint64_t> remapped_rows;  ///< replaced, waiting for a reset to be replaced, or not replaceable
};

/// Asks `gpu` for all of them; adds to `failures` how many questions failed.
ErrorCounts read_error_counts(const NvmlGpu& gpu, std::int64_t& failures);

/// How much a counter grew; nothing if it was not reported twice or went back (the driver was loaded anew).
std::optional<std::uint64_t> growth(const std::optional<std::uint64_t>& before,
                                    const std::optional<std::uint64_t>& after);

/// The condition for probes whose subjects are not single GPUs.
inline constexpr ConditionSpec kGpuErrorsCondition = if_reported(
    "gpu_errors_delta",
    "uncorrected memory errors, remapped rows, PCIe replays, NVLink errors and Xids of all GPUs of the node while "
    "measuring, where NVML tells all of them that the GPUs have");

/// Counts from its making on, without a thread of its own: for loads that must not be disturbed.
class GpuErrors {
 public:
  /// `pci_bus_ids` in any spelling. Where NVML is absent, or a GPU is not known to it, nothing is known.
  explicit GpuErrors(const std::vector<std::string>& pci_bus_ids);
  ~GpuErrors();

  /// Errors of all these GPUs since the making. Nothing if one of them does not report memory errors, PCIe replays or
  /// Xids; links are counted if there are any.
  [[nodiscard]] std::optional<std::int64_t> growth() const;

 private:
  struct Counted;
  std::vector<Counted> counted_;
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace assay::nvml
