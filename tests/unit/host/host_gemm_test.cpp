// The checks of host_gemm must pass a right product and see a single wrong element; operands and arithmetic.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/statistics.h"
#include "probes/host/fma_peak.h"
#include "probes/host/gaussian.h"
#include "probes/host/gemm_check.h"
#include "probes/host/gemm_operands.h"

namespace assay::host {
namespace {

/// A product computed by three plain loops in the precision of Real.
template <class Real>
struct Plain {
  explicit Plain(std::size_t order) : n(order), a(n * n), b(n * n), c(n * n) {
    fill_gaussian(std::span(a), 1);
    fill_gaussian(std::span(b), 2);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) {
        for (std::size_t i = 0; i < n; ++i) c[i + j * n] += a[i + k * n] * b[k + j * n];
      }
    }
  }
  [[nodiscard]] Product<Real> product() const { return {.n = n, .a = a, .b = b, .c = c}; }
  std::size_t n;
  std::vector<Real> a, b, c;
};

template <class Real>
class gemm_check : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(gemm_check, Reals);

constexpr std::size_t kOrder = 150;  // more than the 64 sampled lines, and no multiple of anything

}  // namespace

TYPED_TEST(gemm_check, a_right_product_has_no_mismatch) {
  const Plain<TypeParam> plain(kOrder);
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(wrong_samples(plain.product(), seed), 0U);
    EXPECT_EQ(wrong_rows(plain.product(), seed), 0U);
  }
}

TYPED_TEST(gemm_check, one_corrupted_element_anywhere_fails_exactly_one_row) {
  for (const std::size_t at : {std::size_t{0}, kOrder * 71 + 33, kOrder * kOrder - 1}) {
    Plain<TypeParam> plain(kOrder);
    plain.c[at] += static_cast<TypeParam>(0.1);
    EXPECT_EQ(wrong_rows(plain.product(), 7), 1U) << at;
  }
}

TYPED_TEST(gemm_check, a_corrupted_corner_is_always_among_the_samples) {
  Plain<TypeParam> plain(kOrder);
  plain.c[kOrder * kOrder - 1] += static_cast<TypeParam>(0.01);
  EXPECT_EQ(wrong_samples(plain.product(), 7), 1U);
}

TYPED_TEST(gemm_check, exactly_4096_elements_are_sampled) {
  Plain<TypeParam> plain(kOrder);
  for (auto& x : plain.c) x += 1;
  EXPECT_EQ(wrong_samples(plain.product(), 7), 4096U);
}

TYPED_TEST(gemm_check, a_result_that_is_not_a_number_is_wrong) {
  Plain<TypeParam> plain(kOrder);
  plain.c[0] = std::numeric_limits<TypeParam>::quiet_NaN();
  EXPECT_EQ(wrong_samples(plain.product(), 7), 1U);
  EXPECT_EQ(wrong_rows(plain.product(), 7), 1U);
}

TYPED_TEST(gemm_check, a_flipped_bit_of_half_precision_is_beyond_the_bound) {
  Plain<TypeParam> plain(kOrder);
  const int shift = std::numeric_limits<TypeParam>::digits / 2;
  plain.c[0] *= 1 + std::ldexp(TypeParam{1}, -shift);
  EXPECT_EQ(wrong_samples(plain.product(), 7), 1U);
}

TYPED_TEST(gemm_check, a_matrix_of_one_element_is_checked_too) {
  Plain<TypeParam> plain(1);
  EXPECT_EQ(wrong_samples(plain.product(), 0), 0U);
  plain.c[0] += 1;
  EXPECT_EQ(wrong_samples(plain.product(), 0), 1U);
  EXPECT_EQ(wrong_rows(plain.product(), 0), 1U);
}

TEST(rounding_bound, is_the_certain_one_for_short_sums_and_the_probable_one_for_long) {
  EXPECT_DOUBLE_EQ(rounding_bound<double>(4), 4 * 0x1p-53);
  EXPECT_DOUBLE_EQ(rounding_bound<double>(10'000), 8 * 100 * 0x1p-53);
  EXPECT_DOUBLE_EQ(rounding_bound<float>(10'000), 8 * 100 * 0x1p-24);
}

TEST(gemm_operands, tiles_cover_the_matrix_exactly_once) {
  for (const std::size_t tiles : {1U, 2U, 3U, 6U, 7U, 96U}) {
    for (const std::size_t n : {1U, 15U, 100U, 256U}) {
      std::vector<int> covered(n * n);
      for (std::size_t index = 0; index < tiles; ++index) {
        const Tile part = tile(n, tiles, index);
        for (std::size_t j = part.columns.begin; j < part.columns.end; ++j) {
          for (std::size_t i = part.rows.begin; i < part.rows.end; ++i) ++covered[i + j * n];
        }
      }
      EXPECT_EQ(covered, std::vector<int>(n * n, 1)) << n << " in " << tiles;
    }
  }
}

TEST(gemm_operands, sets_differ_and_results_start_as_not_a_number) {
  PinnedThreads crew(cpus_for(1));
  const GemmOperands<double> operands(crew, 32, 2);
  EXPECT_NE(operands.product(0).a[0], operands.product(1).a[0]);
  EXPECT_NE(operands.product(0).a[0], operands.product(0).b[0]);
  EXPECT_TRUE(std::isnan(operands.product(1).c[32 * 32 - 1]));
}

TEST(gemm_operands, one_flipped_bit_changes_the_fingerprint) {
  PinnedThreads crew(cpus_for(0));
  GemmOperands<float> operands(crew, 33, 1);  // 4356 bytes: not a multiple of 8, so the last word is half a word
  const std::uint64_t before = operands.fingerprint(crew, 0);
  EXPECT_EQ(operands.fingerprint(crew, 0), before);
  float& last = operands.set(0).c[33 * 33 - 1];
  last = std::bit_cast<float>(std::bit_cast<std::uint32_t>(last) ^ 1U);
  EXPECT_NE(operands.fingerprint(crew, 0), before);
}

TEST(gemm_operands, more_than_memory_holds_is_refused_with_the_size_to_change) {
  PinnedThreads crew(cpus_for(1));
  try {
    const GemmOperands<double> operands(crew, 1 << 20, 2);
    FAIL() << "52 TB were granted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("choose a smaller size"), std::string::npos) << error.what();
  }
}

TEST(fma_peak, the_kernel_counts_two_flop_for_every_lane_of_twelve_chains) {
  const FmaKernel wide = fma_kernel(false), narrow = fma_kernel(true);
  EXPECT_EQ(wide.isa, narrow.isa);
  EXPECT_EQ(wide.flop_per_round, 2 * narrow.flop_per_round);
  EXPECT_GE(narrow.flop_per_round, 2.0 * 12 * 2);
}

TEST(fma_peak, a_burst_and_the_clock_are_positive_numbers) {
  PinnedThreads crew(cpus_for(1));
  FmaPeak peak(crew, true);
  EXPECT_TRUE(std::isfinite(peak.burst()) && peak.burst() > 0);
  EXPECT_TRUE(std::isfinite(clock_seen(crew)) && clock_seen(crew) > 0);
}

TEST(gaussian, has_mean_0_and_deviation_1_and_the_same_numbers_for_a_seed) {
  std::vector<double> values(100'001), again(100'001);
  fill_gaussian(std::span(values), 5);
  fill_gaussian(std::span(again), 5);
  EXPECT_EQ(values, again);
  EXPECT_NEAR(moments(values).mean, 0, 0.01);
  EXPECT_NEAR(moments(values).standard_deviation(), 1, 0.01);
}

}  // namespace assay::host
