// gpu_load_absent: the load of a build without CUDA: reports that it has none.
#include "probes/core/probe.h"
#include "probes/power/gpu_load.h"

namespace assay::power {

std::vector<LoadedGpu> gpu_load(std::string_view /*device*/, std::string_view /*library_path*/, bool /*job*/) {
  throw Skip("this program was built without CUDA and cannot load GPUs");
}

}  // namespace assay::power
