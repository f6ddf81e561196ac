// Statistics against published values and exact cases.
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/sampling.h"
#include "probes/core/statistics.h"

namespace assay {
namespace {

/// Correct decimal digits of `value` against `certified` (NIST StRD's LRE).
double correct_digits(double value, double certified) {
  if (value == certified) return 15;
  return -std::log10(std::abs(value - certified) / std::abs(certified));
}

/// NIST StRD NumAcc2..4: `first`, then `low` and `high` in turn, 1001 values in all.
std::vector<double> num_acc(double first, double low, double high) {
  std::vector<double> values = {first};
  for (int i = 0; i < 500; ++i) values.insert(values.end(), {low, high});
  return values;
}

constexpr double kGate = 8;  // REPORTS S4: eight digits on every set

}  // namespace

TEST(statistics, moments_hold_eight_digits_on_the_nist_accuracy_sets) {
  const std::vector<double> num_acc1 = {10000001, 10000003, 10000002};
  EXPECT_GE(correct_digits(moments(num_acc1).mean, 10000002), kGate);
  EXPECT_GE(correct_digits(moments(num_acc1).standard_deviation(), 1), kGate);
  EXPECT_GE(correct_digits(moments(num_acc(1.2, 1.1, 1.3)).mean, 1.2), kGate);
  EXPECT_GE(correct_digits(moments(num_acc(1.2, 1.1, 1.3)).standard_deviation(), 0.1), kGate);
  EXPECT_GE(correct_digits(moments(num_acc(1000000.2, 1000000.1, 1000000.3)).standard_deviation(), 0.1), kGate);
  EXPECT_GE(correct_digits(moments(num_acc(10000000.2, 10000000.1, 10000000.3)).standard_deviation(), 0.1), kGate);
}

TEST(statistics, the_interval_of_ten_samples_is_ranks_two_and_nine) {
  const std::vector<double> samples = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  const auto interval = order_statistic_interval(samples, 0.5, 0.95);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 2);
  EXPECT_EQ(interval->high, 9);
  EXPECT_NEAR(interval->level, 0.979, 0.0005);
}

TEST(statistics, ranks_agree_with_the_exact_binomial_table) {
  struct Row {
    int n;
    double low, high, level;
  };
  for (const auto& [n, low, high, level] :
       {Row{6, 1, 6, 0.969}, Row{9, 2, 8, 0.961}, Row{20, 6, 15, 0.959}, Row{50, 18, 33, 0.967}}) {
    std::vector<double> samples;
    for (int i = 1; i <= n; ++i) samples.push_back(i);
    const auto interval = order_statistic_interval(samples, 0.5, 0.95);
    ASSERT_TRUE(interval) << n;
    EXPECT_EQ(interval->low, low) << n;
    EXPECT_EQ(interval->high, high) << n;
    EXPECT_NEAR(interval->level, level, 0.0006) << n;
  }
}

TEST(statistics, five_samples_have_no_95_percent_interval) {
  const std::vector<double> samples = {1, 2, 3, 4, 5};
  EXPECT_FALSE(order_statistic_interval(samples, 0.5, 0.95));
}

TEST(statistics, percentiles_interpolate_and_median_is_the_half) {
  const std::vector<double> samples = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(samples), 2.5);
  EXPECT_DOUBLE_EQ(percentile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(samples, 1), 4);
  EXPECT_DOUBLE_EQ(percentile(samples, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(median_absolute_deviation(samples), 1);
}

TEST(statistics, one_sided_bounds_are_the_order_statistics_of_the_binomial_table) {
  std::vector<double> samples;
  for (int i = 1; i <= 30; ++i) samples.push_back(i);
  // P(X <= 9) = 0.0214 and P(X <= 10) = 0.0494 for 30 throws of a coin.
  EXPECT_EQ(lower_quantile_bound(samples, 0.5, 0.025), 10);
  EXPECT_EQ(lower_quantile_bound(samples, 0.5, 0.05), 11);
  EXPECT_EQ(upper_quantile_bound(samples, 0.5, 0.025), 21);
  EXPECT_FALSE(lower_quantile_bound(std::span(samples).first(5), 0.5, 0.025));
  EXPECT_FALSE(upper_quantile_bound(samples, 0.95, 0.05));
}

TEST(statistics, neighbours_that_alternate_are_correlated_the_other_way) {
  EXPECT_EQ(lag_one_correlation(std::vector<double>{5, 5, 5, 5}), 0);
  EXPECT_NEAR(lag_one_correlation(std::vector<double>{1, -1, 1, -1}), -0.75, 1e-12);
  EXPECT_NEAR(lag_one_correlation(std::vector<double>{1, 1, -1, -1}), 0.25, 1e-12);
}

TEST(statistics, normal_quantiles_are_those_of_the_tables) {
  EXPECT_NEAR(normal_quantile(0.95), 1.6448536269514722, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_cdf(-1.6448536269514722), 0.05, 1e-12);
}

TEST(sampling, stops_when_the_median_is_known_and_keeps_the_warm_up_apart) {
  int calls = 0;
  const auto result = sample({}, [&] { return ++calls <= 3 ? 50.0 : 100.0; });
  EXPECT_EQ(result.stopped, "stable");
  EXPECT_EQ(result.samples, std::vector<double>(10, 100.0));
  EXPECT_EQ(result.warmup.front(), 50.0);
}

TEST(sampling, noise_runs_into_the_sample_cap_and_says_so) {
  int calls = 0;
  const auto result =
      sample({.max_samples = 20, .warmup_limit = {0}}, [&] { return (++calls % 2) == 0 ? 50.0 : 100.0; });
  EXPECT_EQ(result.stopped, "sample_cap");
  EXPECT_EQ(result.samples.size(), 20U);
}

TEST(sampling, the_median_is_looked_at_after_the_least_twice_and_four_times_as_many_samples) {
  // Two of the first seven samples are half of the others. From the twelfth on the interval's ranks leave both out: who
  // looks after each sample stops there.
  int calls = 0;
  const auto result = sample({.min_samples = 7, .max_samples = 25, .warmup_limit = {60}}, [&] {
    const int taken = ++calls - 6;  // the warm-up ends after six equal values
    return taken == 2 || taken == 4 ? 50.0 : 100.0;
  });
  EXPECT_EQ(result.stopped, "stable");
  EXPECT_EQ(result.samples.size(), 14U);
}

TEST(sampling, the_least_samples_are_taken_past_the_time_limit) {
  const auto result = sample({.min_samples = 7, .time_limit = {0}, .warmup_limit = {0}}, [] { return 100.0; });
  EXPECT_EQ(result.samples.size(), 7U);
}

TEST(sampling, warm_up_goes_on_for_its_least_time_though_steady_and_past_its_cap) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto result = sample({.warmup_limit = {0}, .warmup_least = {0.2}}, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return 100.0;
  });
  EXPECT_GT(result.warmup.size(), 6U);
  EXPECT_GE(std::chrono::duration<double>(Clock::now() - begin).count(), 0.2 + 10 * 0.005);
  EXPECT_EQ(result.samples.size(), 10U);
}

TEST(sampling, samples_are_taken_for_the_least_load_past_both_caps) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> taken;
  const auto result = sample({.max_samples = 12, .time_limit = {0.02}, .warmup_limit = {0}, .load_least = {0.3}}, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    taken.push_back(Clock::now());
    return taken.size() % 2 == 0 ? 50.0 : 100.0;
  });
  EXPECT_GT(result.samples.size(), 12U);
  EXPECT_GT(std::chrono::duration<double>(taken.back() - taken.front()).count(), 0.3);
  EXPECT_EQ(result.stopped, "sample_cap");
}

TEST(sampling, a_value_that_is_not_finite_is_an_error) {
  EXPECT_THROW(sample({}, [] { return std::nan(""); }), std::runtime_error);
}

}  // namespace assay
