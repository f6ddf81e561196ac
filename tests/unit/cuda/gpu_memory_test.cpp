// What the kernels of cuda_hbm_bandwidth must leave behind, payloads, and the walk's slices.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "probes/cuda/figures.h"
#include "probes/cuda/payload.h"
#include "probes/cuda/stream_values.h"

namespace assay::cuda {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::array kArithmetic = {HbmKernel::copy, HbmKernel::scale, HbmKernel::add, HbmKernel::triad};

/// Three arrays on the host, filled as the probe fills those of a GPU, and the kernels as STREAM defines them.
struct HostArrays {
  explicit HostArrays(HbmKernel kernel, std::size_t elements) : a(elements), b(elements), c(elements) {
    for (std::size_t i = 0; i < elements; ++i) {
      a[i] = hbm_start_value(kernel, HbmArray::a, i);
      b[i] = hbm_start_value(kernel, HbmArray::b, i);
      c[i] = hbm_start_value(kernel, HbmArray::c, i);
    }
  }
  void pass(HbmKernel kernel) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (kernel == HbmKernel::copy) c[i] = a[i];
      if (kernel == HbmKernel::scale) b[i] = 3 * c[i];
      if (kernel == HbmKernel::add) c[i] = a[i] + b[i];
      if (kernel == HbmKernel::triad) a[i] = std::fma(3.0, c[i], b[i]);
    }
  }
  [[nodiscard]] std::size_t mismatches(HbmKernel kernel) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      wrong += a[i] == hbm_expected(kernel, HbmArray::a, i) ? 0 : 1;
      wrong += b[i] == hbm_expected(kernel, HbmArray::b, i) ? 0 : 1;
      wrong += c[i] == hbm_expected(kernel, HbmArray::c, i) ? 0 : 1;
    }
    return wrong;
  }
  std::vector<double> a, b, c;
};

std::uint64_t dot_by_hand(std::uint64_t elements) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    sum += static_cast<std::uint64_t>(hbm_start_value(HbmKernel::dot, HbmArray::a, i) *
                                      hbm_start_value(HbmKernel::dot, HbmArray::b, i));
  }
  return sum;
}

std::uint64_t sum_by_hand(std::uint64_t seed, std::uint64_t words) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < words; ++i) sum += payload_word(seed, i);
  return sum;
}

Sampling slice_of(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

}  // namespace

TEST(hbm_values, any_number_of_passes_leaves_what_one_pass_must) {
  for (const HbmKernel kernel : kArithmetic) {
    HostArrays arrays(kernel, 4096);
    arrays.pass(kernel);
    EXPECT_EQ(arrays.mismatches(kernel), 0U);
    arrays.pass(kernel);
    EXPECT_EQ(arrays.mismatches(kernel), 0U);
  }
}

TEST(hbm_values, a_pass_that_did_not_happen_is_a_mismatch_in_every_element_of_its_result) {
  for (const HbmKernel kernel : kArithmetic) EXPECT_EQ(HostArrays(kernel, 4096).mismatches(kernel), 4096U);
}

TEST(hbm_values, a_result_is_the_same_whether_multiplication_and_addition_are_fused) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double b = hbm_start_value(HbmKernel::triad, HbmArray::b, i),
                 c = hbm_start_value(HbmKernel::triad, HbmArray::c, i);
    const volatile double product = kHbmScalar * c;
    ASSERT_EQ(b + product, std::fma(kHbmScalar, c, b));
    ASSERT_EQ(static_cast<std::uint64_t>(std::fma(kHbmScalar, c, b)),
              hbm_start(HbmArray::b, i, kHbmBits) + 3 * hbm_start(HbmArray::c, i, kHbmBits));
  }
}

TEST(hbm_values, the_period_is_a_prime) {
  std::uint64_t divisors = 0;
  for (std::uint64_t d = 2; d * d <= kHbmPeriod; ++d) divisors += kHbmPeriod % d == 0 ? 1 : 0;
  EXPECT_EQ(divisors, 0U);
}

TEST(hbm_values, an_address_that_is_wrong_by_a_power_of_two_gives_another_value) {
  for (unsigned bit = 0; bit < 34; ++bit) {
    EXPECT_NE(hbm_start(HbmArray::a, 12345, kHbmBits),
              hbm_start(HbmArray::a, 12345 + (std::uint64_t{1} << bit), kHbmBits))
        << bit;
  }
}

TEST(hbm_values, the_three_arrays_begin_with_different_values) {
  std::set<std::uint64_t> values;
  for (const HbmArray array : kHbmArrays) {
    for (std::uint64_t i = 0; i < 1000; ++i) values.insert(hbm_start(array, i, kHbmBits));
  }
  EXPECT_EQ(values.size(), 3000U);
}

TEST(hbm_values, the_dot_product_in_closed_form_is_the_sum_of_products) {
  EXPECT_EQ(hbm_dot(1000), dot_by_hand(1000));
  EXPECT_EQ(hbm_dot(kHbmPeriod), dot_by_hand(kHbmPeriod));
  EXPECT_EQ(hbm_dot(2 * kHbmPeriod + 77), dot_by_hand(2 * kHbmPeriod + 77));
}

TEST(hbm_bytes_of, each_kernel_counts_what_it_asks_to_read_and_write) {
  EXPECT_EQ(hbm_bytes(HbmKernel::read, kGiB), kGiB);
  EXPECT_EQ(hbm_bytes(HbmKernel::write, kGiB), kGiB);
  EXPECT_EQ(hbm_bytes(HbmKernel::copy, kGiB), 2 * kGiB);
  EXPECT_EQ(hbm_bytes(HbmKernel::scale, kGiB), 2 * kGiB);
  EXPECT_EQ(hbm_bytes(HbmKernel::add, kGiB), 3 * kGiB);
  EXPECT_EQ(hbm_bytes(HbmKernel::triad, kGiB), 3 * kGiB);
  EXPECT_EQ(hbm_bytes(HbmKernel::dot, kGiB), 2 * kGiB);
}

TEST(payload, one_changed_word_is_one_mismatch) {
  std::vector<std::uint64_t> words(10000);
  fill_payload(words, 7);
  EXPECT_EQ(payload_mismatches(words, 7), 0U);
  words[9999] ^= 1;
  EXPECT_EQ(payload_mismatches(words, 7), 1U);
}

TEST(payload, another_seed_is_a_mismatch_in_every_word) {
  std::vector<std::uint64_t> words(10000);
  fill_payload(words, std::uint64_t{1} << 48);
  EXPECT_EQ(payload_mismatches(words, std::uint64_t{2} << 48), words.size());
}

TEST(payload, words_that_moved_by_one_place_are_all_mismatches) {
  std::vector<std::uint64_t> words(1001);
  fill_payload(words, 7);
  EXPECT_EQ(payload_mismatches(std::span(words).subspan(1), 7), 1000U);
}

TEST(payload, poison_shows_in_every_page_until_it_is_overwritten) {
  std::vector<std::uint64_t> words(512 * 10 + 1);
  fill_payload(words, 7);
  poison_payload(words, 7);
  EXPECT_EQ(payload_mismatches(words, 7), 11U);
}

TEST(payload, the_sum_in_closed_form_is_the_sum_of_words) {
  EXPECT_EQ(payload_sum(99, 0), 0U);
  EXPECT_EQ(payload_sum(99, 1), sum_by_hand(99, 1));
  EXPECT_EQ(payload_sum(99, 100000), sum_by_hand(99, 100000));
  EXPECT_EQ(payload_sum(~std::uint64_t{0}, 100001), sum_by_hand(~std::uint64_t{0}, 100001));
}

TEST(payload, the_sum_of_more_words_than_have_a_triangle_in_64_bits_is_right) {
  const std::uint64_t words = (std::uint64_t{1} << 33) + 1;
  EXPECT_EQ(payload_sum(5, words) - payload_sum(5, words - 1), payload_word(5, words - 1));
}

TEST(slices, are_as_many_as_leave_the_reserve) {
  const SlicePlan plan = plan_slices({10 * kGiB + 5}, {kGiB}, {kGiB / 4});
  EXPECT_EQ(plan.slices, 9U);
  EXPECT_EQ(plan.left.count, kGiB + 5);
}

TEST(slices, are_none_without_room_or_size) {
  EXPECT_EQ(plan_slices({kGiB}, {kGiB}, {1}).slices, 0U);
  EXPECT_EQ(plan_slices({100}, {10}, {200}).slices, 0U);
  EXPECT_EQ(plan_slices({kGiB}, {0}, {1}).slices, 0U);
  EXPECT_EQ(plan_slices({kGiB}, {0}, {1}).left.count, kGiB);
}

TEST(slices, the_worst_is_a_slow_median_and_not_a_slow_sample) {
  const std::vector<Sampling> slices = {slice_of({100, 100, 10}), slice_of({80, 80, 80}), slice_of({100, 101, 102})};
  EXPECT_DOUBLE_EQ(slice_worst(slices).value(), 0.8);
}

TEST(slices, without_samples_there_is_no_worst) {
  EXPECT_FALSE(slice_worst({}).has_value());
  const std::vector<Sampling> slices = {slice_of({1}), slice_of({})};
  EXPECT_FALSE(slice_worst(slices).has_value());
}

TEST(array_size_of, is_what_is_wanted_where_it_fits) {
  EXPECT_EQ(array_size({4 * kGiB}, 3, {80 * kGiB}, {78 * kGiB}, {1 << 20}).count, 4 * kGiB);
}

TEST(array_size_of, all_arrays_take_at_most_four_fifths_of_memory_and_no_more_than_is_free) {
  EXPECT_EQ(array_size({4 * kGiB}, 3, {10 * kGiB}, {10 * kGiB}, {1 << 20}).count, 8 * kGiB / 3 / (1 << 20) * (1 << 20));
  EXPECT_EQ(array_size({4 * kGiB}, 3, {10 * kGiB}, {3 * kGiB}, {1 << 20}).count, kGiB);
  EXPECT_EQ(array_size({4 * kGiB}, 3, {10 * kGiB}, {100}, {1 << 20}).count, 0U);
}

}  // namespace assay::cuda
