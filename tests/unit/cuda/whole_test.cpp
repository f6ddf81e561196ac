// Products of whole numbers: exact in every type, and checked as a whole.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "probes/cuda/gemm_type.h"
#include "probes/cuda/whole.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kSize = 96;

/// A product of whole numbers, column-major, and the weighted terms of its B.
struct Computed {
  WholeNumbers numbers;
  std::vector<double> d;
  std::vector<std::uint64_t> terms;

  [[nodiscard]] std::size_t wrong_lines() const {
    std::size_t wrong = 0;
    for (std::size_t line = 0; line < numbers.m; ++line) {
      const auto result = [&](std::size_t column) { return d[column * numbers.m + line]; };
      if (!whole_line_is_right(numbers, line, terms.data(), result)) ++wrong;
    }
    return wrong;
  }
};

/// The product of `numbers` with bits of the elements of A kept, of line 5 some terms of some columns lost.
Computed computed(const WholeNumbers& numbers, int kept = -1, std::size_t lost_from = 0, std::size_t lost = 0) {
  const auto [m, n, k] = std::array{numbers.m, numbers.n, numbers.k};
  Computed product{.numbers = numbers, .d = std::vector<double>(m * n), .terms = {}};
  for (std::size_t term = 0; term < k; ++term) product.terms.push_back(weighted_term(product.numbers, term));
  for (std::size_t column = 0; column < n; ++column) {
    for (std::size_t line = 0; line < m; ++line) {
      int sum = 0;
      for (std::size_t term = 0; term < k; ++term) {
        const bool gone = line == 5 && column >= 16 && column < 32 && term >= lost_from && term < lost_from + lost;
        if (gone) continue;
        const int a = whole_element(product.numbers, WholeStream::a, line, term);
        sum += (a < 0 ? -(-a & kept) : a & kept) * whole_element(product.numbers, WholeStream::b, column, term);
      }
      product.d[column * m + line] = sum;
    }
  }
  return product;
}

Computed computed(std::size_t m, std::size_t n, std::size_t k, std::size_t lost_from = 0, std::size_t lost = 0) {
  return computed(whole_numbers(m, n, k, 7), -1, lost_from, lost);
}

WholeNumbers wide(WholeForm form, unsigned bits) { return wide_numbers(40, 48, 64, 7, form, bits); }

}  // namespace

TEST(whole, a_right_product_of_any_shape_is_right_in_every_line) {
  EXPECT_EQ(computed(kSize, kSize, kSize).wrong_lines(), 0U);
  EXPECT_EQ(computed(33, 70, 1536).wrong_lines(), 0U);
}

TEST(whole, one_element_that_is_off_by_one_is_found_wherever_it_is) {
  const Computed right = computed(kSize, kSize, kSize);
  for (const std::size_t place : {std::size_t{0}, kSize * kSize / 2 + 3, kSize * kSize - 1}) {
    Computed wrong = right;
    wrong.d[place] += 1;
    EXPECT_EQ(wrong.wrong_lines(), 1U) << place;
  }
}

TEST(whole, errors_that_cancel_in_their_sum_are_found) {
  Computed wrong = computed(kSize, kSize, kSize);
  wrong.d[3 * kSize + 1] += 4;
  wrong.d[9 * kSize + 1] -= 4;
  EXPECT_EQ(wrong.wrong_lines(), 1U);
}

TEST(whole, a_small_block_of_terms_that_one_line_lost_is_found) {
  EXPECT_EQ(computed(kSize, kSize, 1024, 520, 8).wrong_lines(), 1U);
}

TEST(whole, lines_of_each_other_are_found) {
  Computed wrong = computed(kSize, kSize, kSize);
  for (std::size_t column = 0; column < kSize; ++column)
    std::swap(wrong.d[column * kSize], wrong.d[column * kSize + 1]);
  EXPECT_EQ(wrong.wrong_lines(), 2U);
}

TEST(whole, what_is_no_whole_number_or_none_at_all_is_wrong) {
  for (const double value :
       {0.5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e30}) {
    Computed wrong = computed(kSize, kSize, kSize);
    wrong.d[17] = value;
    EXPECT_EQ(wrong.wrong_lines(), 1U) << value;
  }
}

TEST(whole, wide_numbers_fill_their_bits_and_come_through_one_at_a_time) {
  for (const WholeForm form : {WholeForm::wide_a, WholeForm::wide_b}) {
    for (const unsigned bits : {2U, 3U, 8U, 20U}) {
      const Computed product = computed(wide(form, bits));
      EXPECT_EQ(product.wrong_lines(), 0U);
      const double first = std::ldexp(1, static_cast<int>(bits) - 1);
      for (const double result : product.d) {
        EXPECT_GE(std::abs(result), first);
        EXPECT_LT(std::abs(result), 2 * first);
      }
    }
  }
  EXPECT_EQ(wide(WholeForm::wide_a, 53).bits, kMostWideBits);
}

TEST(whole, a_bit_of_a_factor_that_is_stuck_at_0_is_found_by_wide_numbers_alone) {
  constexpr int kWithoutBit2 = ~4;
  EXPECT_EQ(computed(whole_numbers(40, 48, 64, 7), kWithoutBit2).wrong_lines(), 0U);
  EXPECT_EQ(computed(wide(WholeForm::wide_a, 8), kWithoutBit2).wrong_lines(), 40U);
}

TEST(whole, results_and_partial_sums_are_exact_in_eight_bits) {
  constexpr std::size_t kLines = 24;
  for (const std::size_t k : {std::size_t{256}, std::size_t{1536}, std::size_t{8192}}) {
    const WholeNumbers numbers = whole_numbers(kLines, kLines, k, 3);
    double squares = 0;
    int largest = 0;
    for (std::size_t line = 0; line < kLines; ++line) {
      for (std::size_t column = 0; column < kLines; ++column) {
        int sum = 0;
        for (std::size_t term = 0; term < k; ++term) {
          sum +=
              whole_element(numbers, WholeStream::a, line, term) * whole_element(numbers, WholeStream::b, column, term);
          largest = std::max(largest, std::abs(sum));
        }
        squares += static_cast<double>(sum) * sum;
      }
    }
    EXPECT_LT(largest, kLargestWhole / 2) << k;
    EXPECT_NEAR(std::sqrt(squares / (kLines * kLines)), k < 400 ? 16 : 20, 2) << k;
  }
}

TEST(keeps_algorithm, that_can_emulate_unless_emulation_is_allowed) {
  EXPECT_TRUE(keeps_algorithm(1, false)) << "that it can does not mean that it does";
  EXPECT_FALSE(keeps_algorithm(1, true));
  EXPECT_TRUE(keeps_algorithm(0, true));
  EXPECT_TRUE(keeps_algorithm(std::nullopt, true));
}

}  // namespace assay::cuda
