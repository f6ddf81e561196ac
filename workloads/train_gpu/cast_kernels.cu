// cast_kernels: their launches, and the conversion of the hardware, which fp8_code() says.
#include <algorithm>

#include <cuda_fp8.h>

#include "workloads/train_gpu/fp8_cast.h"

namespace assay::train_gpu::kernels {

__device__ inline std::uint16_t fp8_pair(const CastShape& shape, float a, float b) {
  return __nv_cvt_float2_to_fp8x2(float2{a, b}, __NV_SATFINITE, shape.wide ? __NV_E5M2 : __NV_E4M3);
}

}  // namespace assay::train_gpu::kernels

#include "workloads/train_gpu/cast_kernels.cuh"
#include "workloads/train_gpu/kernel_parts.cuh"
#include "workloads/train_gpu/step_kernels.h"

namespace assay::train_gpu::kernels {

template <class Number>
void cast(const CastShape& shape, const Number* from, std::uint8_t* plain, std::uint8_t* turned, CastScale* scale,
          const cuda::Stream& stream) {
  constexpr unsigned kMost = 1024;  // a few blocks for each SM, each of which ends with one atomic operation
  const std::size_t eights = shape.size() / kCodes;
  const unsigned blocks = std::min(blocks_for(eights), kMost);
  largest_kernel<<<blocks, kCastThreads, 0, stream.get()>>>(eights, blocks, from, scale);
  launched("the largest number of a matrix");
  const auto tiles = [](std::size_t size) { return static_cast<unsigned>((size + kTile - 1) / kTile); };
  cast_kernel<<<dim3(tiles(shape.columns), tiles(shape.rows)), kCastThreads, 0, stream.get()>>>(shape, from, plain,
                                                                                                turned, scale);
  launched("rounding a matrix to FP8");
}
template void cast(const CastShape&, const float*, std::uint8_t*, std::uint8_t*, CastScale*, const cuda::Stream&);
template void cast(const CastShape&, const train::Bf16*, std::uint8_t*, std::uint8_t*, CastScale*, const cuda::Stream&);

}  // namespace assay::train_gpu::kernels
