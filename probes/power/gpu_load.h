// gpu_load: GPUs that multiply matrices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "probes/power/load_engine.h"

namespace assay::power {

/// Conditions of a GPU of a job, besides cuda::kWalkConditions.
inline constexpr ConditionSpec kJobConditions[] = {
    if_asked("job_s", "time of a GPU's job, in s, where the engine is job"),
    if_asked("job_products",
             "results of products that were compared bit by bit with the first of the same operands, "
             "where the engine is job: all"),
    if_asked("job_copied_bytes", "B that were copied within the GPU's memory and compared, where the engine is job"),
    if_asked("detects_wrong_rate",
             "wrong results of products in an hour of which the job would have shown one with a "
             "probability of 0.95, where the engine is job"),
    if_asked("walk_slices", "slices of 1 GiB that the job walks through, where the engine is job"),
};

/// A GPU of a load.
struct LoadedGpu {
  LoadPart part;
  Subject subject;
  std::string pci_bus_id;
  std::string words;  ///< "NVIDIA H200, bf16, cuBLASLt 13.1.0"
};

/// The GPUs that `device` names (see kDeviceParameter), each with a level of its own: BF16 matrices of normal numbers,
/// by the algorithm that cuBLASLt ranks first, opened at run time from `library_path` first. With `job` they copy and
/// walk through their memory as well, and all of it is checked (gpu_job.h). Call it before other threads run. Throws
/// Skip where this build has no CUDA, the node no driver or no such GPU, or the library is missing.
std::vector<LoadedGpu> gpu_load(std::string_view device, std::string_view library_path, bool job);

}  // namespace assay::power
