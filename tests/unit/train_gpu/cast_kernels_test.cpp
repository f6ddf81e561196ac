// The kernels that cast a matrix to FP8, on the host, block by block: every code, both copies, no other memory.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/inference/cuda_on_host.h"
#include "workloads/train_gpu/fp8_cast.h"

namespace {
unsigned atomicMax(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to = std::max(before, value);
  return before;
}
}  // namespace

namespace assay::train_gpu::kernels {
/// As the hardware's conversion.
inline std::uint16_t fp8_pair(const CastShape& shape, float a, float b) {
  return static_cast<std::uint16_t>(fp8_code(shape, a) | fp8_code(shape, b) << 8U);
}
}  // namespace assay::train_gpu::kernels

#include "workloads/train_gpu/cast_kernels.cuh"  // after what its kernels use

namespace assay::train_gpu::cast_kernels_test {
namespace {

constexpr std::uint8_t kFence = 0xA5;
constexpr std::size_t kFences = 64;

/// Copies of a matrix, and fences behind them.
struct Cast {
  explicit Cast(std::size_t size) : plain(size + kFences, kFence), turned(size + kFences, kFence) {}
  std::vector<std::uint8_t> plain, turned;
  CastScale scale{.inverse = 0, .largest = 0};
};

template <class Number>
Cast cast(const CastShape& shape, const std::vector<Number>& from) {
  Cast to(shape.size());
  const cuda_on_host::Launcher launch;
  constexpr unsigned kBlocks = 3;
  launch(HostIndex{kBlocks, 1, 1}, kernels::largest_kernel<Number>, shape.size() / kernels::kCodes, kBlocks,
         from.data(), &to.scale);
  const auto tiles = [](std::size_t size) { return static_cast<unsigned>((size + 63) / 64); };
  launch(HostIndex{tiles(shape.columns), tiles(shape.rows), 1}, kernels::cast_kernel<Number>, shape, from.data(),
         to.plain.data(), to.turned.data(), &to.scale);
  return to;
}

template <class Number>
void expect_right(const CastShape& shape) {
  std::vector<Number> from;
  float largest = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const float value = static_cast<float>(train::mixed(i, 3) % 2001) / 16 - 62.5F;
    from.push_back(train::narrowed<Number>(value));
    largest = std::max(largest, std::abs(train::widened(from.back())));
  }
  const float scale = fp8_scale(shape, largest);
  Cast right(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i)
    right.plain[i] = right.turned[i % shape.columns * shape.rows + i / shape.columns] =
        fp8_code(shape, train::widened(from[i]) * scale);
  const Cast found = cast(shape, from);
  EXPECT_EQ(found.plain, right.plain);
  EXPECT_EQ(found.turned, right.turned);
  EXPECT_EQ(found.scale.largest, largest);
  EXPECT_EQ(found.scale.inverse, 1 / scale);
}

TEST(CastKernels, write_every_code_of_both_copies_and_nothing_else) {
  for (const auto& [rows, columns] : {std::pair(16, 16), std::pair(64, 64), std::pair(16, 144), std::pair(208, 32)}) {
    for (const bool wide : {false, true}) {
      for (const bool exact : {false, true}) {
        const CastShape shape{.rows = static_cast<std::size_t>(rows),
                              .columns = static_cast<std::size_t>(columns),
                              .wide = wide,
                              .exact = exact};
        expect_right<float>(shape);
        expect_right<train::Bf16>(shape);
      }
    }
  }
}

TEST(CastKernels, of_numbers_that_are_none_or_infinite_hide_nothing) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const CastShape shape{.rows = 16, .columns = 32};
    std::vector<float> from(shape.size(), 1);
    from[100] = wrong;
    const Cast found = cast(shape, from);
    EXPECT_FALSE(std::isfinite(cuda::decode(shape.format(), found.plain[0]) * found.scale.inverse));
    EXPECT_EQ(found.plain[100], 0x7F);
  }
}

}  // namespace
}  // namespace assay::train_gpu::cast_kernels_test
