// Failures that a large fleet shows by chance reject nothing.
#include "orchestrator/judge/decide/chance.h"

#include <gtest/gtest.h>

#include "probes/core/statistics.h"

namespace assay::judge::chance_test {
namespace {

constexpr double kLimit = 100;

/// A lower limit of 100 missed by `sigmas` standard uncertainties of `uncertainty` each, before it is held against
/// chance.
Result missed_by(double sigmas, double uncertainty) {
  Result result{.requirement = "r", .node = "n", .outcome = Outcome::fail, .reason = "It misses.", .unit = "B/s"};
  result.value = kLimit - sigmas * uncertainty;
  result.limit_low = kLimit;
  result.uncertainty = uncertainty;
  result.margin = (*result.value - kLimit) / kLimit;
  result.false_accept = normal_cdf(sigmas);
  return result;
}

Result met() {
  Result result = missed_by(-10, 1);
  result.outcome = Outcome::pass;
  return result;
}

}  // namespace

TEST(chance, a_failure_by_far_stands_in_a_fleet_of_any_size) {
  Results results(10000, met());
  results.push_back(missed_by(8, 2));
  hold_against_chance(results);
  EXPECT_EQ(results.back().outcome, Outcome::fail);
  EXPECT_EQ(results.front().outcome, Outcome::pass);
}

TEST(chance, one_of_thousand_at_three_and_a_half_uncertainties_may_be_chance_and_alone_it_is_not) {
  Results results(999, met());
  results.push_back(missed_by(3.5, 2));
  hold_against_chance(results);
  EXPECT_EQ(results.back().outcome, Outcome::conditional_fail);
  EXPECT_EQ(results.back().reason, "It misses, but one of 1000 subjects is that far off by chance: not decided.");
  Results alone = {missed_by(3.5, 2)};
  hold_against_chance(alone);
  EXPECT_EQ(alone[0].outcome, Outcome::fail);
}

TEST(chance, many_that_are_far_off_together_are_not_chance) {
  Results results(900, met());
  for (int i = 0; i < 100; ++i) results.push_back(missed_by(3.5, 2));
  hold_against_chance(results);
  EXPECT_EQ(results.back().outcome, Outcome::fail);
}

TEST(chance, another_requirement_does_not_count) {
  Results results(999, met());
  results.push_back(missed_by(3.5, 2));
  results.back().requirement = "s";
  hold_against_chance(results);
  EXPECT_EQ(results.back().outcome, Outcome::fail);
}

TEST(chance, a_shortfall_below_one_in_a_hundred_decides_nothing_however_well_it_is_known) {
  Results results = {missed_by(90, 0.01)};
  hold_against_chance(results);
  EXPECT_EQ(results[0].outcome, Outcome::conditional_fail);
  EXPECT_EQ(results[0].reason, "It misses, but by less than 1 % of it: not decided.");
}

TEST(chance, nor_does_one_within_three_standard_uncertainties) {
  Results results = {missed_by(2.5, 4)};
  hold_against_chance(results);
  EXPECT_EQ(results[0].reason, "It misses, but by less than 3 standard uncertainties of its attempts: not decided.");
}

TEST(chance, a_count_of_errors_is_never_a_matter_of_chance) {
  Result count{.requirement = "r", .node = "n", .outcome = Outcome::fail, .reason = "1 misses.", .unit = "1"};
  count.value = 1;
  count.limit_high = 0;
  count.uncertainty = 0;
  count.false_accept = 1;
  Results results(10000, met());
  results.push_back(count);
  hold_against_chance(results);
  EXPECT_EQ(results.back().outcome, Outcome::fail);
}

}  // namespace assay::judge::chance_test
