// decode_cuda_absent: stand-in for decode_cuda in a build without the CUDA Toolkit: it reports that.
#include "workloads/inference/decode_cuda.h"

namespace assay::inference {

void decode_on_gpus(const Parameters&, const DecodePlan&, Recorder&) {
  throw Skip(
      "engine cuda: this build was configured without the CUDA Toolkit (nvcc was not found, or ASSAY_CUDA=OFF); hint: "
      "install the packages of assay that were built with it");
}

}  // namespace assay::inference
