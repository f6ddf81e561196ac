// fp8_cast: matrices kept as FP8, each with one scale of its own. Plain constexpr C++20, which nvcc reads, too.
//
// A linear layer y = x w has three products, and FP8 products of compute capability 8.9 and 9.0 read both factors along
// k only ("TN", cuBLAS manual, cublasLtMatmul). So each matrix is needed as it is and transposed:
//
//   forward   y  = x w       x (tokens x in)     and w transposed (out x in)
//   input     dx = dy w^T    dy (tokens x out)   and w (in x out)
//   weight    dw = x^T dy    x transposed        and dy transposed
//
// Formats and scales are those of Transformer Engine's recipe Float8CurrentScaling (transformer_engine/common/recipe):
// x and w are E4M3, dy is E5M2; a scale maps the largest magnitude that the matrix has now to the largest number.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "probes/cuda/quantise.h"

namespace assay::train_gpu {

/// rows x columns, one row after the other, both multiples of 16.
struct CastShape {
  std::size_t rows = 0, columns = 0;
  bool wide = false;   ///< E5M2 instead of E4M3
  bool exact = false;  ///< the scale is a power of two, so that small whole numbers stay exact
  /// Not for kernels: to choose between two constants takes their addresses, which are a host's, and nvcc traps there.
  [[nodiscard]] constexpr cuda::MiniFloat format() const { return wide ? cuda::kE5m2 : cuda::kE4m3; }
  /// The largest number of the format.
  [[nodiscard]] constexpr float top() const { return wide ? 57344 : 448; }
  [[nodiscard]] constexpr std::size_t size() const { return rows * columns; }
};

static_assert(CastShape{}.top() == cuda::decode(cuda::kE4m3, cuda::kE4m3.largest));
static_assert(CastShape{.wide = true}.top() == cuda::decode(cuda::kE5m2, cuda::kE5m2.largest));

/// Of a matrix of FP8: the factor by which a product multiplies its numbers, and its largest magnitude before.
struct alignas(16) CastScale {
  float inverse = 1, largest = 0;
};

/// One factor of a product: its numbers, and its scale.
struct Fp8Factor {
  const std::uint8_t* codes = nullptr;
  const CastScale* scale = nullptr;
};

/// The factor of numbers of at most `largest` in size before they are rounded. Of a matrix of zeros 1; where `largest`
/// is infinite or a NaN, no product of the matrix is finite.
constexpr float fp8_scale(const CastShape& shape, float largest) {
  constexpr float kMost = 0x1p126F;  // whose inverse is a normal number
  constexpr std::uint32_t kPowerOfTwo = 0xFF800000U;
  if (largest == 0) return 1;
  const float scale = largest < shape.top() / kMost ? kMost : shape.top() / largest;
  return shape.exact ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & kPowerOfTwo) : scale;
}
static_assert(fp8_scale({.wide = false}, 3.5F) == 128 && fp8_scale({.wide = true}, 3.5F) == 16384);
static_assert(fp8_scale({.exact = true}, 3) == 128 && fp8_scale({.exact = true}, 0) == 1);
static_assert(fp8_scale({}, 1e-40F) == 0x1p126F);

/// The code of a number that has been scaled: the nearest, of two as near the even one, and beyond the largest finite
/// number the largest; of a NaN 0x7F, which is one.
constexpr std::uint8_t fp8_code(const CastShape& shape, float scaled) {
  constexpr std::uint8_t kNoNumber = 0x7F;
  if (scaled != scaled) return kNoNumber;
  return static_cast<std::uint8_t>(cuda::encode(shape.format(), scaled));
}
static_assert(fp8_code({}, 384) == 0x7C && fp8_code({}, -1000) == 0xFE);

}  // namespace assay::train_gpu
