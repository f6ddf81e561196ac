// The decision rule: attempts, their scatter, guard bands and bounds.
#include <cmath>

#include <gtest/gtest.h>

#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/judge/decide/decision.h"

namespace assay::judge {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Attempts = std::vector<std::vector<double>>;

AttemptsEstimate estimate_of(const Attempts& attempts, plan::Statistic statistic = plan::Statistic::median,
                             double risk = 0.025) {
  std::vector<Measurement> measured;
  for (const auto& samples : attempts) measured.push_back({.metric = "m", .unit = "B/s", .samples = samples});
  std::vector<const Measurement*> pointers;
  for (const auto& one : measured) pointers.push_back(&one);
  return estimate_attempts(pointers, statistic, {.confidence = 0.95, .risk = risk}).value();
}

/// Attempts of ten equal samples each.
Attempts steady(const std::vector<double>& values) {
  Attempts attempts;
  for (const double value : values) attempts.emplace_back(10, value);
  return attempts;
}

Result decided(const AttemptsEstimate& estimate, const plan::Limit& limit, double risk = 0.025, double instrument = 0) {
  Result result{.unit = "B/s"};
  decide(limit, estimate, own_scatter(estimate, {}), instrument, {}, risk, result);
  return result;
}

}  // namespace

TEST(decision, the_guard_band_is_students_over_the_attempts) {
  const auto estimate = estimate_of(steady({109, 110, 111}));
  EXPECT_EQ(estimate.value, 110);
  EXPECT_EQ(estimate.between, 1);
  const Result result = decided(estimate, {.at_least = 100, .unit = "B/s"});
  EXPECT_NEAR(*result.guard_factor, 4.30265272975, 1e-9);  // t(0.975, 2)
  EXPECT_NEAR(*result.acceptance_low, 100 + 4.30265272975 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(*result.degrees_of_freedom, 2);
  EXPECT_EQ(*result.between, 1);
}

TEST(decision, the_four_outcomes_lie_where_the_rule_says) {
  const auto estimate = estimate_of(steady({109, 110, 111}));
  constexpr double kGuard = 4.30265272975 / 1.7320508075688772;
  const auto outcome = [&](double limit) { return decided(estimate, {.at_least = limit, .unit = "B/s"}).outcome; };
  EXPECT_EQ(outcome(110 - kGuard * 1.001), Outcome::pass);
  EXPECT_EQ(outcome(110 - kGuard * 0.999), Outcome::conditional_pass);
  EXPECT_EQ(outcome(110 + kGuard * 0.999), Outcome::conditional_fail);
  EXPECT_EQ(outcome(110 + kGuard * 1.001), Outcome::fail);
}

TEST(decision, an_upper_limit_is_the_mirror_image) {
  const auto estimate = estimate_of(steady({109, 110, 111}));
  constexpr double kGuard = 4.30265272975 / 1.7320508075688772;
  const auto outcome = [&](double limit) { return decided(estimate, {.at_most = limit, .unit = "s"}).outcome; };
  EXPECT_EQ(outcome(110 + kGuard * 1.001), Outcome::pass);
  EXPECT_EQ(outcome(110 + kGuard * 0.999), Outcome::conditional_pass);
  EXPECT_EQ(outcome(110 - kGuard * 0.999), Outcome::conditional_fail);
  EXPECT_EQ(outcome(110 - kGuard * 1.001), Outcome::fail);
}

TEST(decision, between_takes_the_worse_side) {
  const Result result = decided(estimate_of(steady({11, 11, 11})), {.at_least = 0, .at_most = 10, .unit = "1"});
  EXPECT_EQ(result.outcome, Outcome::fail);
  EXPECT_EQ(*result.limit_low, 0);
  EXPECT_EQ(*result.limit_high, 10);
}

TEST(decision, samples_that_lie_on_the_other_side_keep_a_mean_from_passing) {
  // Three of seven runs were below the limit: the mean is beyond its guard band, the 27th of 70 samples is not.
  const auto estimate = estimate_of(steady({110, 110, 110, 110, 99, 99, 99}));
  EXPECT_EQ(*estimate.low_bound, 99);
  const Result result = decided(estimate, {.at_least = 99.5, .unit = "B/s"});
  EXPECT_GT(*result.value, *result.acceptance_low);
  EXPECT_EQ(result.outcome, Outcome::conditional_pass);
  EXPECT_NE(result.reason.find("too many of the samples lie on the other side"), std::string::npos);
  // And the mirror image: it keeps one from failing.
  const auto mirrored = estimate_of(steady({90, 90, 90, 90, 101, 101, 101}));
  EXPECT_EQ(decided(mirrored, {.at_least = 100.5, .unit = "B/s"}).outcome, Outcome::conditional_fail);
}

TEST(decision, what_the_samples_show_of_one_run_is_not_undercut_by_chance_between_runs) {
  // Medians of the three runs are equal, and each is known no better than its own samples allow.
  const std::vector<double> spread = {109, 90, 111, 130, 105, 112, 100, 120, 108, 115};
  const auto estimate = estimate_of({spread, spread, spread});
  EXPECT_EQ(estimate.between, 0);
  EXPECT_EQ(estimate.correlation, 0);
  EXPECT_NEAR(estimate.within, 10 / 2.31, 0.03);  // half of [100, 120] over the normal quantile of 0.979
  const Result result = decided(estimate, {.at_least = 100, .unit = "B/s"});
  EXPECT_NEAR(*result.uncertainty, estimate.within / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(result.terms->repeatability, result.terms->within, 1e-12);
}

TEST(decision, samples_that_follow_each_other_count_for_fewer) {
  std::vector<double> wave;
  for (int i = 0; i < 40; ++i) wave.push_back(100 + ((i / 10) % 2 == 0 ? 1.0 : -1.0) + 0.01 * (i % 3));
  std::vector<double> shuffled;
  for (std::size_t i = 0; i < 40; ++i) shuffled.push_back(wave[(i * 11) % 40]);
  const auto following = estimate_of({wave, wave, wave}), free = estimate_of({shuffled, shuffled, shuffled});
  EXPECT_GT(following.correlation, 0.7);
  EXPECT_EQ(free.correlation, 0);
  EXPECT_GT(following.within, 2.3 * free.within);
}

TEST(decision, an_instrument_brings_its_own_degrees_of_freedom) {
  // u^2 = 1/3 + 1.1^2, and Welch and Satterthwaite give u^4 / ((1/3)^2 / 2).
  const Result result = decided(estimate_of(steady({109, 110, 111})), {.at_least = 100, .unit = "B/s"}, 0.025, 0.01);
  const double square = 1.0 / 3 + 1.21;
  EXPECT_NEAR(*result.uncertainty, std::sqrt(square), 1e-9);
  EXPECT_NEAR(*result.degrees_of_freedom, square * square * 18, 1e-6);
  EXPECT_NEAR(result.terms->instrument, 1.1, 1e-12);
}

TEST(decision, a_reference_has_a_share_in_the_uncertainty) {
  const auto estimate = estimate_of(steady({110, 110, 110}));
  Result result{.unit = "B/s"};
  decide({.at_least = 0.9, .unit = "B/s", .reference = plan::Reference::metric}, estimate, own_scatter(estimate, {}), 0,
         {.value = 100, .uncertainty = 2, .degrees = 4}, 0.05, result);
  EXPECT_NEAR(result.terms->reference, 1.8, 1e-12);
  EXPECT_NEAR(*result.degrees_of_freedom, 4, 1e-9);
  EXPECT_NEAR(*result.guard_factor, 2.13184678633, 1e-9);  // t(0.95, 4)
  EXPECT_EQ(*result.limit_low, 90);
}

TEST(decision, cells_that_share_factors_are_decided_as_each_alone) {
  GuardFactors factors;
  for (const double risk : {0.05, 0.025}) {
    for (const auto& values : {std::vector{110.0, 111.0, 109.0}, {110, 111, 109, 110}, {108, 111, 109, 110}}) {
      const auto estimate = estimate_of(steady(values));
      const Scatter scatter = own_scatter(estimate, {});
      Result alone{.unit = "B/s"}, shared{.unit = "B/s"};
      decide({.at_least = 108, .unit = "B/s"}, estimate, scatter, 0.01, {}, risk, alone);
      for (int i = 0; i < 2; ++i)
        decide({.at_least = 108, .unit = "B/s"}, estimate, scatter, 0.01, {}, risk, shared, factors);
      EXPECT_EQ(shared.guard_factor, alone.guard_factor);
      EXPECT_EQ(shared.reason, alone.reason);
    }
  }
}

TEST(decision, one_attempt_cannot_tell_how_runs_differ) {
  const auto estimate = estimate_of(steady({110}));
  EXPECT_EQ(decided(estimate, {.at_least = 100, .unit = "B/s"}).outcome, Outcome::conditional_pass);
  EXPECT_EQ(decided(estimate, {.at_least = 120, .unit = "B/s"}).outcome, Outcome::conditional_fail);
  EXPECT_NE(decided(estimate, {.at_least = 100, .unit = "B/s"}).reason.find("one attempt cannot tell how runs differ"),
            std::string::npos);
}

TEST(decision, a_stated_reproducibility_stands_in_for_more_attempts) {
  const auto estimate = estimate_of(steady({110}));
  Result result{.unit = "B/s"};
  const auto stated = own_scatter(estimate, {.reproducibility = 0.02});
  decide({.at_least = 106.4, .unit = "B/s"}, estimate, stated, 0, {}, 0.05, result);
  EXPECT_NEAR(*result.uncertainty, 2.2, 1e-12);
  EXPECT_NEAR(*result.guard_factor, 1.64485362695, 1e-9);
  EXPECT_FALSE(result.degrees_of_freedom);
  EXPECT_EQ(result.outcome, Outcome::conditional_pass);  // 110 - 3.62 is below
  decide({.at_least = 106.3, .unit = "B/s"}, estimate, stated, 0, {}, 0.05, result);
  EXPECT_EQ(result.outcome, Outcome::pass);
}

TEST(decision, a_count_is_judged_by_the_worst_of_all_attempts_without_a_guard_band) {
  const auto estimate = estimate_of({{0}, {3}, {0}}, plan::Statistic::max);
  EXPECT_EQ(estimate.value, 3);
  EXPECT_EQ(decided(estimate, {.at_most = 0, .unit = "1"}).outcome, Outcome::fail);
  EXPECT_EQ(decided(estimate, {.at_most = 3, .unit = "1"}).outcome, Outcome::pass);
  EXPECT_EQ(decided(estimate_of({{0}}, plan::Statistic::max), {.at_most = 0, .unit = "1"}).outcome, Outcome::pass);
}

TEST(decision, two_stages_share_the_risk_and_no_guard_band_has_none) {
  EXPECT_NEAR(risk_of(1.6448536269514722, false), 0.05, 1e-12);
  EXPECT_NEAR(risk_of(1.6448536269514722, true), 0.025, 1e-12);
  EXPECT_EQ(risk_of(0, true), 0.5);
  const auto estimate = estimate_of(steady({99, 100, 101}), plan::Statistic::median, 0.5);
  EXPECT_EQ(decided(estimate, {.at_least = 99.99, .unit = "B/s"}, 0.5).outcome, Outcome::pass);
}

TEST(decision, at_the_acceptance_limit_false_acceptance_is_the_risk) {
  const auto estimate = estimate_of(steady({109, 110, 111}));
  const double limit = 110 - 4.30265272975 / std::sqrt(3.0);
  EXPECT_NEAR(*decided(estimate, {.at_least = limit, .unit = "B/s"}).false_accept, 0.025, 1e-9);
}

TEST(decision, too_few_samples_for_the_bound_have_no_estimate) {
  const Measurement measured{.metric = "m", .unit = "B/s", .samples = std::vector<double>(10, 1.0)};
  const Measurement* const one = &measured;
  EXPECT_FALSE(estimate_attempts({&one, 1}, plan::Statistic::median, {.confidence = 0.95, .risk = 1e-4}));
  EXPECT_FALSE(estimate_attempts({&one, 1}, plan::Statistic::p05, {.confidence = 0.95, .risk = 0.05}));
}

TEST(between_runs, eight_steps_pool_their_relative_variances) {
  BetweenRuns between;
  for (int i = 0; i < 8; ++i) between.add("s" + std::to_string(i), estimate_of(steady({99, 100, 101})));
  const Scatter pooled = between.of(estimate_of(steady({198, 200, 202})), {});
  EXPECT_NEAR(pooled.deviation, 2, 1e-12);
  EXPECT_EQ(pooled.degrees, 16);
  EXPECT_EQ(pooled.steps, 8U);
}

TEST(between_runs, seven_steps_are_too_few_and_the_subjects_of_one_step_are_one) {
  BetweenRuns between;
  for (int gpu = 0; gpu < 8; ++gpu) between.add("s0", estimate_of(steady({99, 100, 101})));
  for (int i = 1; i < 7; ++i) between.add("s" + std::to_string(i), estimate_of(steady({99, 100, 101})));
  EXPECT_EQ(between.of(estimate_of(steady({99, 100, 101})), {}).steps, 0U);
  between.add("s7", estimate_of(steady({99, 100, 101})));
  EXPECT_EQ(between.of(estimate_of(steady({99, 100, 101})), {}).degrees, 16);
}

TEST(between_runs, an_unsteady_subject_has_its_own_deviation_and_does_not_widen_that_of_others) {
  BetweenRuns between;
  const auto shaken = estimate_of(steady({80, 100, 120}));
  for (int i = 0; i < 31; ++i) between.add("s" + std::to_string(i), estimate_of(steady({99, 100, 101})));
  between.add("s31", shaken);
  const Scatter own = between.of(shaken, {});
  EXPECT_TRUE(own.unsteady);
  EXPECT_EQ(own.deviation, 20);
  EXPECT_EQ(own.degrees, 2);
  const Scatter others = between.of(estimate_of(steady({99, 100, 101})), {});
  EXPECT_FALSE(others.unsteady);
  EXPECT_NEAR(others.deviation, std::sqrt((31 + 9) / 32.0), 1e-12);  // its variance counts as 9 times the median
}

TEST(between_runs, where_all_others_never_differ_one_that_does_is_unsteady) {
  BetweenRuns between;
  for (int i = 0; i < 8; ++i) between.add("s" + std::to_string(i), estimate_of(steady({100, 100, 100})));
  EXPECT_TRUE(between.of(estimate_of(steady({99, 100, 101})), {}).unsteady);
  EXPECT_EQ(between.of(estimate_of(steady({100, 100, 100})), {}).deviation, 0);
}

TEST(between_runs, attempts_nearer_to_each_other_than_the_least_deviation_have_that) {
  const StatedScatter stated{.least = 0.02};
  const Scatter near = own_scatter(estimate_of(steady({199, 200, 201})), stated);
  EXPECT_EQ(near.deviation, 4);
  EXPECT_EQ(near.degrees, kInfinite);
  const Scatter apart = own_scatter(estimate_of(steady({190, 200, 210})), stated);
  EXPECT_EQ(apart.deviation, 10);
  EXPECT_EQ(apart.degrees, 2);
}

TEST(between_runs, what_is_pooled_over_many_steps_has_no_least_deviation) {
  BetweenRuns between;
  for (int i = 0; i < 8; ++i) between.add("s" + std::to_string(i), estimate_of(steady({99, 100, 101})));
  EXPECT_NEAR(between.of(estimate_of(steady({99, 100, 101})), {.least = 0.05}).deviation, 1, 1e-12);
}

TEST(between_runs, one_attempt_with_a_least_deviation_decides_what_lies_far_from_its_limit) {
  const auto estimate = estimate_of(steady({100}));
  const Scatter scatter = own_scatter(estimate, {.least = 0.01, .reproducibility = {}});
  EXPECT_EQ(scatter.degrees, 1);
  const auto outcome = [&](double limit) {
    Result result{.unit = "s"};
    decide({.at_most = limit, .unit = "s"}, estimate, scatter, 0, {}, 0.05, result);
    return result.outcome;
  };
  constexpr double kGuard = 6.313751514675;  // t(0.95, 1)
  EXPECT_EQ(outcome(100 + kGuard * 1.001), Outcome::pass);
  EXPECT_EQ(outcome(100 + kGuard * 0.999), Outcome::conditional_pass);
  EXPECT_EQ(outcome(100 - kGuard * 1.001), Outcome::fail);
  EXPECT_TRUE(own_scatter(estimate_of(steady({0})), {.least = 0.01, .reproducibility = {}}).unknown);
}

TEST(between_runs, a_stated_reproducibility_is_at_least_the_least_deviation) {
  EXPECT_EQ(own_scatter(estimate_of(steady({100})), {.least = 0.02, .reproducibility = 0.01}).deviation, 2);
}

TEST(decision, a_guard_band_wider_than_its_upper_limit_says_so) {
  const auto estimate = estimate_of(steady({1, 3, 20}));
  const Result result = decided(estimate, {.at_most = 10, .unit = "s"});
  EXPECT_EQ(result.outcome, Outcome::conditional_pass);
  EXPECT_LT(*result.acceptance_high, 0);
  EXPECT_NE(result.reason.find("is wider than the limit: not decided"), std::string::npos) << result.reason;
}

TEST(between_runs, one_attempt_tells_nothing_unless_it_is_stated) {
  EXPECT_TRUE(own_scatter(estimate_of(steady({100})), {}).unknown);
  const Scatter stated = own_scatter(estimate_of(steady({100})), {.reproducibility = 0.01});
  EXPECT_EQ(stated.deviation, 1);
  EXPECT_EQ(stated.degrees, kInfinite);
}

}  // namespace assay::judge
