// gemm_type: the table of types and the arithmetic of shapes and samples.
#include "probes/cuda/gemm_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace assay::cuda {
namespace {

// Tensor cores add blocks of products into an accumulator and cut off what does not fit. For FP8 on Hopper the
// accumulator keeps about 14 bits (DeepSeek-V3 report, arXiv 2412.19437, section 3.3.2); the same is allowed where
// nothing is published.
constexpr Exactness kFp8{.accumulator = 0x1p-13, .per_step = 16, .output = 0x1p-8};
// Binary32 accumulators that cut off, with a bit to spare for the alignment of a block's products.
constexpr Exactness kSingle16{.accumulator = 0x1p-22, .per_step = 4, .output = 0x1p-11};
constexpr Exactness kBrain16{.accumulator = 0x1p-22, .per_step = 4, .output = 0x1p-8};
constexpr Exactness kTensor32{.accumulator = 0x1p-22, .per_step = 4, .output = 0x1p-23};
constexpr Exactness kVector32{.accumulator = 0x1p-24, .per_step = 1, .output = 0x1p-23};
constexpr Exactness kDouble{.accumulator = 0x1p-53, .per_step = 1, .output = 0x1p-52};
constexpr Exactness kWhole{.accumulator = 0, .per_step = 1, .output = 0};

constexpr std::int64_t kLargestHalf = 65504;                       // k ones add up to k
constexpr std::int64_t kInt8Terms = 2147483647LL / (127LL * 127);  // products of 127 that an int32 holds

// name, a, b, d, scaling, compute, granule, largest_k, exactness
constexpr auto kTypes = [] {
  using enum Format;
  using enum Scaling;
  return std::to_array<GemmType>({
      {"fp8_e4m3", e4m3, e4m3, bf16, tensor, 89, 16, 0, kFp8},
      {"fp8_e5m2", e5m2, e4m3, bf16, tensor, 89, 16, 0, kFp8},
      {"bf16", bf16, bf16, bf16, none, 80, 8, 0, kBrain16},
      {"fp16", fp16, fp16, fp16, none, 80, 8, kLargestHalf, kSingle16},
      {"tf32", tf32, tf32, fp32, none, 80, 4, 0, kTensor32},
      {"fp32", fp32, fp32, fp32, none, 80, 4, 0, kVector32},
      {"fp64", fp64, fp64, fp64, none, 80, 2, 0, kDouble},
      {"int8", int8, int8, int32, none, 80, 16, kInt8Terms, kWhole},
      {"mxfp8", e4m3, e4m3, bf16, mx, 100, 32, 0, kFp8},
      {"nvfp4", e2m1, e2m1, bf16, nv, 100, 32, 0, kFp8},
  });
}();

/// A copy of the type called `name` whose operands are stored as `a` and `b`.
GemmType stored_as(std::string_view name, Format a, Format b) {
  GemmType type = *std::ranges::find(kTypes, name, &GemmType::name);
  type.a = a;
  type.b = b;
  return type;
}

}  // namespace

const GemmType& fnuz_type(const GemmType& type) {
  static const GemmType kFnuz[] = {stored_as("fp8_e4m3", Format::e4m3_fnuz, Format::e4m3_fnuz),
                                   stored_as("fp8_e5m2", Format::e5m2_fnuz, Format::e4m3_fnuz)};
  const auto* found = std::ranges::find(kFnuz, type.name, &GemmType::name);
  return found == std::end(kFnuz) ? type : *found;
}

const GemmType& gemm_type(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &GemmType::name);
  if (found == std::end(kTypes)) throw std::logic_error(fmt::format("no element type '{}'", name));
  return *found;
}

std::optional<std::string> shape_problem(const GemmType& type, const GemmShape& shape) {
  constexpr std::size_t kMost = 1 << 20;  // far beyond any memory; keeps m k in 64 bits
  const std::pair<char, std::size_t> dimensions[] = {{'m', shape.m}, {'n', shape.n}, {'k', shape.k}};
  for (const auto& [name, size] : dimensions) {
    if (size < 1 || size > kMost) return fmt::format("{}: {} is not between 1 and {}", name, size, kMost);
    if (size % type.granule != 0) {
      return fmt::format("{}: {} is no multiple of {}, which {} needs; hint: {} is", name, size, type.granule,
                         type.name, (size + type.granule - 1) / type.granule * type.granule);
    }
  }
  if (type.largest_k > 0 && std::cmp_greater(shape.k, type.largest_k)) {
    return fmt::format("k: the result of {} may overflow beyond {}; hint: choose a smaller k", type.name,
                       type.largest_k);
  }
  return std::nullopt;
}

SamplePlan plan_sample(Seconds product, std::size_t sets, Seconds length) {
  constexpr std::size_t kMostNodes = 2048;
  const auto wanted = static_cast<std::size_t>(std::ceil(length.count / product.count));
  const std::size_t turns = std::max<std::size_t>(1, (wanted + sets - 1) / sets);
  const std::size_t turns_in_graph = std::min(turns, std::max<std::size_t>(1, kMostNodes / sets));
  return {.products = turns_in_graph * sets, .launches = (turns + turns_in_graph - 1) / turns_in_graph};
}

}  // namespace assay::cuda
