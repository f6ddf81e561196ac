// gpu_load: GPUs that multiply matrices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probes/core/record.h"
#include "probes/power/load_engine.h"

namespace assay::power {

/// A GPU of a load.
struct LoadedGpu {
  LoadPart part;
  Subject subject;
  std::string words;  ///< "NVIDIA H200, bf16, cuBLASLt 13.1.0"
};

/// The GPUs that `device` names (see kDeviceParameter), each with a level of its own: BF16 matrices of normal numbers,
/// by the algorithm that cuBLASLt ranks first, opened at run time from `library_path` first. Call it before other
/// threads run. Throws Skip where this build has no CUDA, the node no driver or no such GPU, or the library is missing.
std::vector<LoadedGpu> gpu_load(std::string_view device, std::string_view library_path);

}  // namespace assay::power
