// nvidia_load: GPUs of NVIDIA by CUDA and cuBLASLt.
#include "probes/power/gpu_unit.h"

namespace assay::power {

std::vector<LoadedGpu> nvidia_load(const GpuLoad& asked) {
  return cuda::loaded_gpus(asked, {.watch = [](const std::string& address) { return nvml::GpuWatch(address); },
                                   .partitions = [](const std::string&) { return Values{}; }});
}

}  // namespace assay::power
