// What hours show: published quantiles, trends and slopes.
#include "workloads/train/step/reliability.h"

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"

namespace assay::train {
namespace {

std::vector<double> times_of(std::size_t count) {
  std::vector<double> times(count);
  std::iota(times.begin(), times.end(), 0.0);
  return times;
}

}  // namespace

TEST(MtbfBound, is_the_time_over_half_of_the_published_quantile_of_chi_squared) {
  // chi2(0.95; 2 r + 2) / 2 of the tables.
  const std::vector<std::pair<std::int64_t, double>> table = {{0, 2.9957}, {1, 4.7439},  {2, 6.2958},
                                                              {3, 7.7537}, {5, 10.5130}, {10, 16.9622}};
  for (const auto& [interruptions, divisor] : table)
    EXPECT_NEAR(mtbf_bound_s(1e6, interruptions) * divisor / 1e6, 1, 1e-4) << interruptions;
  EXPECT_NEAR(mtbf_bound_s(load_to_show_s(3600), 0), 3600, 1e-6);
}

TEST(LaplaceTrend, is_zero_for_times_about_the_middle_and_beyond_the_limit_where_they_gather) {
  EXPECT_DOUBLE_EQ(*laplace_trend(std::vector<double>{20, 40, 60, 80}, 100), 0);
  EXPECT_GT(*laplace_trend(std::vector<double>{80, 85, 90, 95}, 100), kTrendLimit);
  EXPECT_LT(*laplace_trend(std::vector<double>{5, 10, 15, 20}, 100), -kTrendLimit);
  EXPECT_FALSE(laplace_trend(std::vector<double>{80, 90, 95}, 100));
}

TEST(DriftOf, is_the_slope_though_a_quarter_of_the_values_is_wild) {
  const auto times = times_of(101);
  std::vector<double> values;
  for (const double t : times) values.push_back(std::fmod(t, 4) == 0 ? 9.0 : 1 + 0.0005 * t);
  const auto drift = drift_of(times, values);
  ASSERT_TRUE(drift);
  EXPECT_NEAR(drift->per_length, 0.05, 0.01);
  EXPECT_GE(drift->bound, drift->per_length);
}

TEST(DriftOf, of_values_that_do_not_drift_is_below_its_bound_in_nineteen_of_twenty) {
  std::mt19937 numbers(20261123);
  std::normal_distribution<double> noise(1, 0.01);
  const auto times = times_of(60);
  int below = 0;
  constexpr int kRuns = 1000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    for (std::size_t i = 0; i < times.size(); ++i) values.push_back(noise(numbers));
    if (drift_of(times, values)->bound >= 0) ++below;
  }
  EXPECT_NEAR(below, 950, 25);  // 3.6 standard deviations
}

TEST(DriftOf, of_many_values_is_that_of_their_medians) {
  const auto times = times_of(20'000);
  std::vector<double> values;
  for (const double t : times) values.push_back(2 + t / 20'000);
  EXPECT_NEAR(drift_of(times, values)->per_length, 1 / 2.5, 0.002);
}

TEST(DriftOf, of_too_few_values_is_none) {
  const auto times = times_of(9);
  EXPECT_FALSE(drift_of(times, times));
}

TEST(MachineErrors, are_sums_of_what_there_is) {
  const FakeTree tree;
  EXPECT_FALSE(machine_errors(MachineTree(tree.path())).throttled);
  tree.file("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
  tree.file("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "4\n");
  tree.file("sys/devices/system/edac/mc/mc0/ce_count", "10\n");
  tree.file("sys/devices/system/edac/mc/mc1/ce_count", "1\n");
  const auto found = machine_errors(MachineTree(tree.path()));
  EXPECT_EQ(found.throttled, 7);
  EXPECT_EQ(found.corrected, 11);
  EXPECT_FALSE(found.uncorrected);
  EXPECT_EQ(risen(3, 7), 4);
  EXPECT_EQ(risen(7, 3), 3) << "it was reset";
  EXPECT_FALSE(risen(std::nullopt, 3));
}

}  // namespace assay::train
