// Whether a cell's samples are of one state that lasts: what is named, and what of it opens a cell.
#include "orchestrator/judge/decide/steadiness.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/judge/decide/decision.h"

namespace assay::judge {
namespace {

/// These attempts, held against `limit`.
Result judged_apart(const std::vector<Measurement>& made, const plan::Limit& limit) {
  std::vector<const Measurement*> attempts;
  for (const auto& one : made) attempts.push_back(&one);
  const auto estimate = estimate_attempts(attempts, plan::Statistic::median, {.confidence = 0.95, .risk = 0.025});
  Result result{.unit = limit.unit};
  decide(limit, *estimate, own_scatter(*estimate, {}), 0, {}, 0.025, result);
  note_findings(steadiness_of(attempts), *estimate, false, plan::Statistic::median, result);
  return result;
}

/// Attempts of these samples each, held against `limit`.
Result judged(const std::vector<double>& samples, const plan::Limit& limit, const std::string& stopped = "stable",
              std::size_t count = 3) {
  return judged_apart(
      std::vector<Measurement>(count, {.metric = "m", .unit = limit.unit, .samples = samples, .stopped = stopped}),
      limit);
}

plan::Limit at_least(double limit) { return {.at_least = limit, .unit = "B/s"}; }
plan::Limit at_most(double limit) { return {.at_most = limit, .unit = "s"}; }

std::vector<FindingKind> kinds(const Result& result) {
  std::vector<FindingKind> all;
  for (const auto& finding : result.findings) all.push_back(finding.kind);
  return all;
}

/// `count` samples around `centre`, in an order without a trend and without neighbours alike.
std::vector<double> around(double centre, std::size_t count, double spread = 1) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i)
    samples.push_back(centre + spread * (static_cast<double>((i * 7) % 10) - 4.5) / 4.5);
  return samples;
}

/// Every fifth sample is in the other state.
std::vector<double> two_states(double centre, double other) {
  auto samples = around(centre, 30, 0.1);
  for (std::size_t i = 0; i < samples.size(); i += 5) samples[i] += other - centre;
  return samples;
}

std::vector<double> falling(double from, double by) {
  std::vector<double> samples;
  for (int i = 0; i < 30; ++i) samples.push_back(from - by * i / 29 + ((i * 7) % 3 - 1) * 0.02);
  return samples;
}

}  // namespace

TEST(steadiness, a_steady_cell_has_no_finding) {
  const Result result = judged(around(110, 40), at_least(100));
  EXPECT_EQ(result.outcome, Outcome::pass);
  EXPECT_TRUE(result.findings.empty());
}

TEST(steadiness, a_state_beyond_the_limit_opens_a_pass_and_one_on_its_good_side_is_named_only) {
  const Result open = judged(two_states(110, 90), at_least(100));
  EXPECT_EQ(open.outcome, Outcome::inconclusive);
  EXPECT_EQ(kinds(open), std::vector<FindingKind>{FindingKind::two_states});
  EXPECT_EQ(open.reason,
            "Not steady, and the limit is within reach: the samples are of two states, around 90.0 B/s and 110.0 B/s.");
  const Result named = judged(two_states(110, 104), at_least(100));
  EXPECT_EQ(named.outcome, Outcome::pass);
  EXPECT_EQ(kinds(named), std::vector<FindingKind>{FindingKind::two_states});
  EXPECT_FALSE(named.findings[0].opens);
}

TEST(steadiness, a_state_that_meets_the_limit_opens_a_fail) {
  EXPECT_EQ(judged(two_states(90, 110), at_least(100)).outcome, Outcome::inconclusive);
  EXPECT_EQ(judged(two_states(90, 84), at_least(100)).outcome, Outcome::fail);
}

TEST(steadiness, states_less_than_a_hundredth_apart_are_the_steps_of_a_clock) {
  EXPECT_TRUE(judged(two_states(110, 109.5), at_least(100)).findings.empty());
}

TEST(steadiness, a_trend_opens_where_it_leads_across_the_limit) {
  const Result open = judged(falling(110, 4), at_least(99.5));
  EXPECT_EQ(open.outcome, Outcome::inconclusive);
  EXPECT_EQ(open.findings.at(0).kind, FindingKind::trend);
  const Result named = judged(falling(110, 1), at_least(100));
  EXPECT_EQ(named.outcome, Outcome::pass);
  EXPECT_EQ(named.findings.at(0).kind, FindingKind::trend);
  // Away from the limit: what gets better is not held against it.
  EXPECT_EQ(judged(falling(110, -4), at_least(100)).outcome, Outcome::pass);
  EXPECT_EQ(judged(falling(90, -4), at_most(100.5)).outcome, Outcome::inconclusive);
}

TEST(steadiness, a_trend_of_few_different_samples_is_found_by_their_ties) {
  const auto found = kinds(judged({102, 102, 102, 101, 101, 101}, at_least(100), "stable", 5));
  EXPECT_EQ(std::ranges::count(found, FindingKind::trend), 1);
}

TEST(steadiness, an_excess_that_decays_over_more_than_an_attempt_is_no_steady_pass) {
  std::vector<double> decaying;  // 5 % above the limit at the start, at the limit in the end
  for (int i = 0; i < 10; ++i) decaying.push_back(100 + 5 * std::exp(-i / 30.0) + ((i * 7) % 3 - 1) * 0.1);
  const Result open = judged(decaying, at_least(100));
  EXPECT_EQ(open.outcome, Outcome::inconclusive);
  EXPECT_EQ(open.findings.at(0).kind, FindingKind::trend);
  EXPECT_TRUE(open.findings.at(0).opens);
  // The same slope is no matter for a limit that it does not reach within 200 samples.
  EXPECT_EQ(judged(decaying, at_least(70)).outcome, Outcome::pass);
}

TEST(steadiness, samples_that_follow_each_other_seldom_have_a_drift_though_they_often_have_a_trend) {
  std::mt19937_64 engine(1);
  const auto noise = [&] {  // of deviation 1, the same on every machine
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    return sum;
  };
  constexpr int kCells = 300, kAttempts = 3, kSamples = 20;
  int drifts = 0, trends = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    std::vector<Measurement> made(kAttempts, {.metric = "m", .unit = "B/s", .stopped = "stable"});
    std::vector<const Measurement*> attempts;
    for (auto& one : made) {
      double last = noise();
      for (int i = 0; i < kSamples; ++i)
        one.samples.push_back(110 + (last = 0.9 * last + std::sqrt(1 - 0.81) * noise()));
      attempts.push_back(&one);
    }
    const Steadiness seen = steadiness_of(attempts);
    drifts += seen.drift ? 1 : 0;
    trends += seen.change ? 1 : 0;
  }
  EXPECT_LE(drifts, 9);   // 0.6 % are expected, 2 of 300
  EXPECT_GE(trends, 20);  // 13 %
}

TEST(steadiness, a_trend_of_the_first_stage_counts_where_the_second_shows_it_too) {
  Measurement rising{.metric = "m", .unit = "B/s", .stopped = "stable"}, flat = rising, falling = rising;
  flat.samples = around(110, 20, 0.3);
  for (std::size_t i = 0; i < 20; ++i) rising.samples.push_back(flat.samples[i] + static_cast<double>(i) * 0.1);
  falling.samples.assign(rising.samples.rbegin(), rising.samples.rend());
  const auto seen = [](std::vector<const Measurement*> attempts, double figures) {
    return steadiness_of(attempts, {.begin = 3, .figures = figures});
  };
  const std::vector<const Measurement*> first = {&rising, &rising, &rising};
  EXPECT_TRUE(seen(first, 1e9).recurs) << "without a second stage the first decides";
  const auto with = [&](const Measurement& later, double figures) {
    auto attempts = first;
    attempts.insert(attempts.end(), 3, &later);
    return seen(attempts, figures);
  };
  EXPECT_TRUE(with(rising, 1e5).recurs);
  EXPECT_FALSE(with(rising, 1e32).recurs) << "of so many figures one shows as much by chance";
  EXPECT_TRUE(with(flat, 1).change) << "over all attempts the trend is still there";
  EXPECT_FALSE(with(flat, 1).recurs);
  EXPECT_FALSE(with(falling, 1).recurs);
}

TEST(steadiness, a_trend_of_the_second_stage_alone_is_held_against_all_figures_of_the_run) {
  // A rack: a second stage measures thousands of pairs again, of which the first stage found a trend in a few.
  const Measurement flat{.metric = "m", .unit = "B/s", .samples = around(110, 20, 0.3), .stopped = "stable"};
  Measurement slanted = flat, rising = flat;
  for (std::size_t i = 0; i < 20; ++i) {
    slanted.samples[i] += static_cast<double>(i) * 0.01;
    rising.samples[i] += static_cast<double>(i) * 0.1;
  }
  const auto seen = [&](const Measurement& later, double figures) {
    return steadiness_of(std::vector{&flat, &flat, &flat, &later, &later, &later, &later},
                         {.begin = 3, .figures = figures});
  };
  EXPECT_TRUE(seen(slanted, 1).drift) << "over all attempts there seems to be one";
  EXPECT_TRUE(seen(slanted, 1).recurs);
  EXPECT_FALSE(seen(slanted, 15'000).recurs);
  EXPECT_TRUE(seen(rising, 15'000).recurs) << "a clear one is no chance among as many";
}

TEST(steadiness, a_trend_that_does_not_recur_is_named_and_opens_nothing) {
  std::vector<double> samples = around(110, 20, 0.3);
  const Measurement flat{.metric = "m", .unit = "B/s", .samples = samples, .stopped = "stable"};
  Measurement falling = flat;
  for (std::size_t i = 0; i < 20; ++i) falling.samples[i] -= static_cast<double>(i) * 0.25;
  const std::vector<const Measurement*> attempts = {&falling, &falling, &falling, &flat, &flat, &flat, &flat};
  const auto estimate = estimate_attempts(attempts, plan::Statistic::median, {.confidence = 0.95, .risk = 0.025});
  for (const bool two_stages : {false, true}) {
    Result result{.unit = "B/s"};
    decide(at_least(100), *estimate, own_scatter(*estimate, {}), 0, {}, 0.025, result);
    ASSERT_EQ(result.outcome, Outcome::pass);
    const Recurrence second = two_stages ? Recurrence{.begin = 3} : Recurrence{};
    note_findings(steadiness_of(attempts, second), *estimate, false, plan::Statistic::median, result);
    EXPECT_EQ(result.outcome, two_stages ? Outcome::pass : Outcome::inconclusive);
    ASSERT_EQ(kinds(result), std::vector<FindingKind>{FindingKind::trend});
    EXPECT_EQ(result.findings[0].words.ends_with(", which those of the second stage alone do not show"), two_stages);
  }
}

TEST(steadiness, a_larger_run_wants_a_trend_to_recur_more_clearly) {
  EXPECT_EQ(recurrence_probability(30, true), 0.05);
  EXPECT_EQ(recurrence_probability(1000, true), 0.05);
  EXPECT_DOUBLE_EQ(recurrence_probability(100'000, true), 5e-4);
  EXPECT_DOUBLE_EQ(recurrence_probability(1000, false), 5e-5) << "where the first stage found none, each is new";
}

TEST(steadiness, sampling_that_was_cut_off_decides_far_from_the_limit_only) {
  // 100 to 120, evenly, in an order without a trend.
  std::vector<double> wide;
  for (const int rank : {17, 0, 7, 16, 5, 11, 4, 12, 3, 13, 19, 10, 1, 15, 14, 2, 8, 18, 9, 6})
    wide.push_back(110 + (rank - 9.5) * 10 / 9.5);
  constexpr std::size_t kBothStages = 7;
  EXPECT_EQ(judged(wide, at_least(107.4), "stable", kBothStages).outcome, Outcome::pass);
  for (const std::string stopped : {"sample_cap", "time_cap"}) {
    const auto kind = stopped == "sample_cap" ? FindingKind::sample_cap : FindingKind::time_cap;
    const Result near = judged(wide, at_least(107.4), stopped, kBothStages);
    EXPECT_EQ(near.outcome, Outcome::inconclusive);
    EXPECT_EQ(kinds(near), std::vector<FindingKind>{kind});
    const Result far = judged(wide, at_least(100), stopped, kBothStages);
    EXPECT_EQ(far.outcome, Outcome::pass);
    EXPECT_EQ(kinds(far), std::vector<FindingKind>{kind});
  }
}

TEST(steadiness, samples_that_follow_each_other_are_named) {
  std::vector<double> wave;
  for (int i = 0; i < 60; ++i) wave.push_back(110 + ((i + 5) % 20 < 10 ? 0.4 : -0.4) + 0.05 * ((i * 7) % 5));
  const Result result = judged(wave, at_least(100));
  EXPECT_EQ(result.outcome, Outcome::pass);
  EXPECT_EQ(kinds(result), std::vector<FindingKind>{FindingKind::serial_correlation});
}

TEST(steadiness, stalls_that_a_median_does_not_see_open_a_pass) {
  auto samples = around(110, 50);
  for (std::size_t i = 0; i < 3; ++i) samples[17 * i] = 0;
  const Result result = judged(samples, at_least(100));
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  EXPECT_EQ(result.findings.at(0).words, "9 of 150 samples are under half of the median");
}

TEST(steadiness, one_stall_in_a_hundred_and_fifty_samples_is_no_finding) {
  const Measurement good{.metric = "m", .unit = "B/s", .samples = around(110, 50), .stopped = "stable"};
  Measurement stalled = good;
  stalled.samples[20] = 0;
  const std::vector<const Measurement*> attempts = {&good, &stalled, &good};
  const Steadiness seen = steadiness_of(attempts);
  EXPECT_EQ(seen.below_half, 1U);
  const auto estimate = estimate_attempts(attempts, plan::Statistic::median, {.confidence = 0.95, .risk = 0.025});
  Result result{.unit = "B/s"};
  decide(at_least(100), *estimate, own_scatter(*estimate, {}), 0, {}, 0.025, result);
  note_findings(seen, *estimate, false, plan::Statistic::median, result);
  EXPECT_EQ(result.outcome, Outcome::pass);
  EXPECT_TRUE(result.findings.empty());
}

TEST(steadiness, a_mean_below_the_limit_opens_a_pass_of_the_median) {
  auto samples = around(102, 30, 0.1);
  for (std::size_t i = 0; i < 30; i += 5) samples[i] -= 30;  // not below half of the median, but work is missing
  const Result result = judged(samples, at_least(100));
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  EXPECT_EQ(result.findings.at(0).kind, FindingKind::stalled);
}

TEST(steadiness, times_are_held_against_twice_the_median) {
  auto samples = around(80, 50);
  for (std::size_t i = 0; i < 3; ++i) samples[17 * i] = 900;
  const Result result = judged(samples, at_most(200));
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  EXPECT_EQ(result.findings.at(0).words, "9 of 150 samples are over twice the median");
}

TEST(steadiness, stalls_out_of_reach_of_the_limit_are_named_and_open_nothing) {
  auto samples = around(80, 50);
  for (std::size_t i = 0; i < 50; i += 4) samples[i] = 320;
  for (const double limit : {410.0, 14 * 320.0}) {
    const Result result = judged(samples, at_most(limit));
    EXPECT_EQ(result.outcome, Outcome::pass) << limit;
    EXPECT_EQ(result.findings.at(0).kind, FindingKind::stalled);
    EXPECT_FALSE(result.findings[0].opens);
  }
  for (const double limit : {390.0, 310.0}) EXPECT_EQ(judged(samples, at_most(limit)).outcome, Outcome::inconclusive);
  auto rates = around(110, 50);
  for (std::size_t i = 0; i < 50; i += 4) rates[i] = 50;
  EXPECT_EQ(judged(rates, at_least(39)).outcome, Outcome::pass);
  EXPECT_EQ(judged(rates, at_least(41)).outcome, Outcome::inconclusive);
}

TEST(steadiness, a_few_times_in_a_hundred_are_held_against_the_limit_by_how_many_reach_it) {
  auto samples = around(80, 50);
  for (const std::size_t i : {7, 29}) samples[i] = 250;  // 6 of 150: 1 in 100 gives as many once in 260
  EXPECT_EQ(judged(samples, at_most(200)).outcome, Outcome::pass);
  samples[41] = 250;
  EXPECT_EQ(judged(samples, at_most(200)).outcome, Outcome::inconclusive);
}

TEST(steadiness, a_mean_of_times_over_the_limit_opens_where_more_than_a_few_make_it) {
  auto samples = around(98, 30, 0.1);
  for (std::size_t i = 0; i < 30; i += 5) samples[i] += 60;  // none over twice the median
  const Result result = judged(samples, at_most(100));
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  EXPECT_EQ(result.findings.at(0).kind, FindingKind::stalled);
  auto one = around(80, 30, 0.1);
  one[11] = 2000;  // 3 of 90, and the mean is 144
  EXPECT_EQ(judged(one, at_most(100)).outcome, Outcome::pass);
}

TEST(steadiness, tails_of_healthy_latencies_open_one_cell_in_a_thousand_at_most) {
  std::mt19937_64 engine(20261127);
  const auto even = [&] { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; };
  const auto normal = [&] { return std::sqrt(-2 * std::log(even())) * std::cos(6.283185307179586 * even()); };
  struct Shape {
    const char* name;
    double limit;
    std::function<double()> time;
  };
  const Shape shapes[] = {
      {"log-normal", 5, [&] { return std::exp(0.5 * normal()); }},
      {"two modes", 5, [&] { return (even() < 0.2 ? 3 : 1) * (1 + 0.05 * normal()); }},
      {"1 in 100 at 50 times", 3, [&] { return (even() < 0.01 ? 50 : 1) * (1 + 0.05 * normal()); }}};
  constexpr int kCells = 6000;
  for (const auto& shape : shapes) {
    for (const std::size_t samples : {10U, 37U}) {
      int opened = 0;
      std::string why;
      for (int cell = 0; cell < kCells; ++cell) {
        std::vector<Measurement> made(3, {.metric = "m", .unit = "s", .stopped = "stable"});
        for (auto& one : made) std::generate_n(std::back_inserter(one.samples), samples, shape.time);
        const Result result = judged_apart(made, at_most(shape.limit));
        if (result.outcome != Outcome::inconclusive) continue;
        ++opened;
        why += result.reason + "\n";
      }
      EXPECT_LE(opened, kCells / 1000) << shape.name << ", " << samples << ": " << why;
    }
  }
}

TEST(steadiness, stalls_do_not_save_what_fails) {
  auto samples = around(90, 50);
  for (std::size_t i = 0; i < 3; ++i) samples[17 * i] = 0;
  const Result result = judged(samples, at_least(100));
  EXPECT_EQ(result.outcome, Outcome::fail);
  EXPECT_FALSE(result.findings.at(0).opens);
}

}  // namespace assay::judge
