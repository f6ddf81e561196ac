// gemm_kernels: the kernels of probes/cuda/gemm_kernels.cuh, launched by the HIP runtime (see memory_kernels.cpp).
#include <stdexcept>

#include "probes/amd/launch.h"
#include "probes/cuda/gemm_kernels.cuh"
#include "probes/cuda/gemm_operands.h"

namespace assay::cuda {

template <class... Parameters, class... Arguments>
void launch_gemm(unsigned blocks, const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  static const amd::Named kNames[] = {amd::named(kernels::assay_gemm_fill, "assay_gemm_fill"),
                                      amd::named(kernels::assay_gemm_sum, "assay_gemm_sum"),
                                      amd::named(kernels::assay_whole_fill, "assay_whole_fill"),
                                      amd::named(kernels::assay_whole_halves, "assay_whole_halves"),
                                      amd::named(kernels::assay_whole_terms, "assay_whole_terms"),
                                      amd::named(kernels::assay_whole_check, "assay_whole_check")};
  amd::launch<Parameters...>(kNames, blocks, kernels::kGemmThreads, stream, kernel,
                             static_cast<Parameters>(arguments)...);
}

void fill_blocks(const Stream&, std::byte*, std::byte*, Scaling, std::size_t, std::size_t, std::uint64_t, Pattern) {
  throw std::logic_error("no type of amd_gemm has scales of blocks");
}

}  // namespace assay::cuda

#include "probes/cuda/gemm_launches.cuh"  // after how they are launched
