// gpu_load: GPUs that multiply matrices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "probes/nvml/gpu_watch.h"
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

/// How a loaded GPU is divided, where the vendor's library reports it.
inline constexpr ConditionSpec kPartitionConditions[] = {
    if_reported("compute_partition",
                "whether an AMD GPU of the load is one device (SPX) or several (DPX, QPX, CPX), where AMD SMI reports "
                "it"),
    if_reported("memory_partition", "in how many parts its memory is (NPS1, NPS4), where AMD SMI reports it"),
};

/// What GPUs are asked to do.
struct GpuLoad {
  std::string device, library_path;  ///< see kDeviceParameter; folders that are searched first
  std::size_t order = 4096;          ///< of the matrices; a job copies 16 B times its square
  bool job = false;                  ///< whether they copy and walk through their memory as well, and all is checked
};

/// A GPU of a load.
struct LoadedGpu {
  LoadPart part;
  Subject subject;
  std::string words;       ///< "NVIDIA H200, bf16, cuBLASLt 13.1.0"
  nvml::GpuWatch watch;    ///< by the vendor's library
  Values partitions = {};  ///< kPartitionConditions
};

/// The GPUs that are asked for, each with a level of its own: BF16 matrices of normal numbers, by the algorithm that
/// cuBLASLt or hipBLASLt ranks first; of a job see gpu_job.h. Those of NVIDIA, or of AMD where NVIDIA has none of that
/// name. Call it before other threads run. Throws Skip where the node has no driver or no such GPU, or a library is
/// missing.
std::vector<LoadedGpu> gpu_load(const GpuLoad& asked);

/// The same of one vendor.
std::vector<LoadedGpu> nvidia_load(const GpuLoad& asked);
std::vector<LoadedGpu> amd_load(const GpuLoad& asked);

}  // namespace assay::power
