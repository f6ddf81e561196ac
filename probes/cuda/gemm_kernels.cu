// gemm_kernels: the kernels of gemm_kernels.cuh, launched by the CUDA runtime, and blocks with scales, in the layout
// that cuBLASLt reads.
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "probes/cuda/gemm_kernels.cuh"
#include "probes/cuda/gemm_operands.h"

namespace assay::cuda {

template <class... Parameters, class... Arguments>
void launch_gemm(unsigned blocks, const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<blocks, kernels::kGemmThreads, 0, stream.get()>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel");
}

}  // namespace assay::cuda

#include "probes/cuda/gemm_launches.cuh"  // after how they are launched

namespace assay::cuda {
namespace {

/// One thread makes one block: its numbers, their scale, their codes.
template <int kBlock>
__global__ void fill_scaled(std::byte* target, std::byte* scales, std::size_t lines, std::size_t k, std::uint64_t seed,
                            Pattern pattern, std::uint64_t stride) {
  constexpr bool kMx = kBlock == static_cast<int>(block_of(Scaling::mx));
  const std::size_t blocks = k / kBlock;
  for (std::size_t at = kernels::gemm_index(); at < lines * blocks; at += stride) {
    float values[kBlock];
    float largest = 0;
    for (int i = 0; i < kBlock; ++i) {
      values[i] = kernels::element(pattern, seed, at * kBlock + i);
      largest = fmaxf(largest, fabsf(values[i]));
    }
    const std::uint8_t scale = kMx ? mx_scale(largest) : nv_scale(largest);
    const float unit = kMx ? decode_ue8m0(scale) : decode(kE4m3, scale);
    scales[scale_index(at / blocks, at % blocks, blocks)] = std::byte{scale};
    for (int i = 0; i < kBlock; i += 2) {
      const std::uint32_t low = encode(kMx ? kE4m3 : kE2m1, values[i] / unit);
      const std::uint32_t high = encode(kMx ? kE4m3 : kE2m1, values[i + 1] / unit);
      if constexpr (kMx) {
        target[at * kBlock + i] = std::byte{static_cast<std::uint8_t>(low)};
        target[at * kBlock + i + 1] = std::byte{static_cast<std::uint8_t>(high)};
      } else {
        target[(at * kBlock + i) / 2] = std::byte{static_cast<std::uint8_t>(low | high << 4)};
      }
    }
  }
}

}  // namespace

void fill_blocks(const Stream& stream, std::byte* target, std::byte* scales, Scaling scaling, std::size_t lines,
                 std::size_t k, std::uint64_t seed, Pattern pattern) {
  constexpr int kMxBlock = static_cast<int>(block_of(Scaling::mx)), kNvBlock = static_cast<int>(block_of(Scaling::nv));
  if (scaling == Scaling::mx)
    launch_over_items(lines * k / kMxBlock, stream, fill_scaled<kMxBlock>, target, scales, lines, k, seed, pattern);
  else
    launch_over_items(lines * k / kNvBlock, stream, fill_scaled<kNvBlock>, target, scales, lines, k, seed, pattern);
}

}  // namespace assay::cuda
