// gpu_load_absent: the load of a build without CUDA: reports that it has none for NVIDIA's GPUs.
#include "probes/core/probe.h"
#include "probes/power/gpu_load.h"

namespace assay::power {

std::vector<LoadedGpu> nvidia_load(const GpuLoad& /*asked*/) {
  throw Skip("this program was built without CUDA and cannot load NVIDIA's GPUs");
}

}  // namespace assay::power
