// gpu_load_absent: what stands for gpu_load in a build without CUDA: it says so.
#include "probes/core/probe.h"
#include "probes/power/gpu_load.h"

namespace assay {

std::vector<LoadedGpu> gpu_load(std::string_view /*device*/, std::string_view /*library_path*/) {
  throw Skip("this program was built without CUDA and cannot load GPUs");
}

}  // namespace assay
