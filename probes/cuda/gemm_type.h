// gemm_type: the element types of cuda_gemm and amd_gemm, their demands on shape and device, and how exact their
// results can be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/units.h"
#include "probes/cuda/gemm_format.h"

namespace assay::cuda {

/// Scales of A and B with Scaling::tensor: powers of two, so that they cost no accuracy, and not 1, so that a library
/// that ignores them is found out.
inline constexpr float kTensorScaleA = 0.5F, kTensorScaleB = 0.25F;

/// How far a right result may be from the exact one (see gemm_check.h).
struct Exactness {
  double accumulator = 0;    ///< relative error of one addition into the accumulator
  std::size_t per_step = 1;  ///< products that one such addition takes in
  double output = 0;         ///< relative error of storing the result
};

/// One choice of the parameter `type`.
struct GemmType {
  std::string_view name;
  Format a, b, d;
  Scaling scaling = Scaling::none;
  int compute = 80;            ///< 10 major + minor of the least compute capability
  std::size_t granule = 1;     ///< m, n and k are multiples of it (leading dimensions of 16 bytes)
  std::int64_t largest_k = 0;  ///< beyond it the result type may overflow; 0: no limit
  Exactness exactness;
};

/// The choices of the parameter, separated by one space.
inline constexpr std::string_view kGemmTypeNames = "fp8_e4m3 fp8_e5m2 bf16 fp16 tf32 fp32 fp64 int8 mxfp8 nvfp4";

/// The type called `name`, one of kGemmTypeNames.
const GemmType& gemm_type(std::string_view name);

/// The same with FP8 elements stored as FNUZ (see quantise.h); `type` itself where it has no such elements.
const GemmType& fnuz_type(const GemmType& type);

/// C (m x n) = op(A) (m x k) op(B) (k x n), all column-major, A stored transposed: lines of op(A) and columns of op(B)
/// are contiguous ("TN").
struct GemmShape {
  std::size_t m = 0, n = 0, k = 0;

  /// Two for every multiplication and addition: 2 m n k.
  [[nodiscard]] constexpr double flop() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};
static_assert(GemmShape{8192, 8192, 8192}.flop() == 1099511627776.0);

/// Why `type` cannot take `shape`, with a hint; empty if it can.
std::optional<std::string> shape_problem(const GemmType& type, const GemmShape& shape);

/// Bytes of `count` elements.
constexpr Bytes bytes_of(Format format, std::size_t count) { return {count * bits_of(format) / 8}; }

/// Bytes of one set of A, B and the result, without block scales.
constexpr Bytes set_bytes(const GemmType& type, const GemmShape& shape) {
  return {bytes_of(type.a, shape.m * shape.k).count + bytes_of(type.b, shape.k * shape.n).count +
          bytes_of(type.d, shape.m * shape.n).count};
}

/// Whether an algorithm may be measured, of which the library says that it can emulate the type by narrower ones
/// (`emulates` not 0; nothing where it does not know the question). That it can does not mean that it does: only while
/// emulation is `allowed` may it report more than the hardware's own rate.
constexpr bool keeps_algorithm(std::optional<int> emulates, bool allowed) {
  return !allowed || emulates.value_or(0) == 0;
}

/// How one sample is made of launches of a graph of products.
struct SamplePlan {
  std::size_t products = 0;  ///< in one graph; whole turns through all sets
  std::size_t launches = 0;  ///< of that graph in one sample
};

/// A plan whose sample lasts at least `length` when one product takes `product` (positive) and `sets` sets are used in
/// turn. Graphs stay under some thousand nodes, since recording one takes about a microsecond a node.
SamplePlan plan_sample(Seconds product, std::size_t sets, Seconds length);

}  // namespace assay::cuda
