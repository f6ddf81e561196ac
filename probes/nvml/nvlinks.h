// nvlinks: how many of a GPU's NVLinks are up, and the errors that they have counted.
#pragma once

#include <cstdint>
#include <optional>

#include "probes/nvml/nvml_gpu.h"

namespace assay::nvml {

/// The links of one GPU.
struct NvLinks {
  unsigned active = 0;
  unsigned inactive = 0;
  /// Errors of all links since the driver was loaded: replays, recoveries and CRC errors up to NVLink 4; malformed
  /// packets, overruns, receive and integrity errors and recoveries from NVLink 5. One event may count in several of
  /// them.
  std::optional<std::uint64_t> errors;
};

/// The links of `gpu`: as many as the driver says it has, else all that it answers for. Absent if it has none.
Answer<NvLinks> read_nvlinks(const NvmlGpu& gpu);

}  // namespace assay::nvml
