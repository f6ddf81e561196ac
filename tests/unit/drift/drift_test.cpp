// What a fleet without fault, and one with, looks like to the detector. Small fleets, so that each test takes a second.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/drift/charts.h"
#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/level.h"
#include "orchestrator/rehearse/nights.h"

namespace assay::drift {
namespace {

using rehearse::NightFault;
using rehearse::NightFaultKind;
using rehearse::NightFaults;
using rehearse::Nights;

struct Seen {
  DriftReport last;
  int raised_night = -1;           ///< of the first flag
  std::size_t flags = 0;           ///< ids over all nights
  std::vector<std::string> units;  ///< with a flag, in order of their nights
  std::size_t fleet_nights = 0;    ///< with a fleet finding
};

Seen watch(std::size_t nodes, std::size_t metrics, int nights, NightFaults faults, Policy policy = {},
           std::uint64_t seed = 1) {
  Nights source({.nodes = nodes, .metrics = metrics, .seed = seed}, std::move(faults));
  Detector detector(source.fleet(), policy);
  Seen seen;
  std::map<std::string, int> ids;
  for (int i = 0; i < nights; ++i) {
    detector.add(source.next());
    seen.last = detector.report();
    seen.fleet_nights += seen.last.fleet.empty() ? 0 : 1;
    for (const Flag& flag : seen.last.flags) {
      if (!ids.emplace(flag.id, i).second) continue;
      seen.units.push_back(flag.unit);
      if (seen.raised_night < 0) seen.raised_night = i;
    }
  }
  seen.flags = ids.size();
  return seen;
}

/// A budget of false flags for tests of one flag: any fleet, a small one too, has its share of false ones.
Policy strict() {
  Policy policy;
  policy.false_flags.count = 0.001;
  return policy;
}

NightFaults only(NightFault fault) { return {.faults = {std::move(fault)}}; }

TEST(Charts, the_limits_are_those_of_the_published_table) {
  EXPECT_NEAR(limit_for(0.5, 9e6), 14.17, 0.04);
  EXPECT_NEAR(limit_for(1, 9e6), 7.22, 0.04);
  EXPECT_NEAR(limit_for(0.5, 1.8e7), 14.86, 0.04);
  EXPECT_NEAR(limit_for(1, 1.8e7), 7.56, 0.04);
  EXPECT_NEAR(limit_for(0.5, 14'400), 7.72, 0.01);
  EXPECT_NEAR(limit_for(1, 14'400), 3.97, 0.01);
}

TEST(Charts, a_cliff_needs_as_many_visits_as_the_budget_says) { EXPECT_EQ(cliff_history(0.2, 30, 30, 3), 29); }

TEST(Charts, scores_are_quantiles) {
  const auto scores = rank_scores(10'000);
  EXPECT_NEAR(scores.front(), 3.8906, 1e-4);
  EXPECT_NEAR(scores[2'500], 0.67436, 1e-4);
  EXPECT_EQ(scores.front(), -scores.back());
  EXPECT_NEAR(student_score(-3, 11), 2.5093, 0.02);
  EXPECT_LT(student_score(1, 11), 0);
  EXPECT_NEAR(poisson_tail(0.5, 3), 0.0143877, 1e-6);
}

TEST(Charts, the_correlation_is_that_of_all_metrics_until_one_has_pairs_of_its_own) {
  const Serial usual{.rho = 0.3, .pairs = 2000};
  EXPECT_EQ(serial_correlation({}, {.rho = 0.3, .pairs = 190}), 0) << "too few";
  EXPECT_NEAR(serial_correlation({}, usual), 0.3 + 1 / std::sqrt(200), 1e-9);
  EXPECT_NEAR(serial_correlation({.rho = 0, .pairs = 19'800}, usual), 60 / 20'000.0 + 1 / std::sqrt(20'000), 1e-9);
  EXPECT_EQ(serial_correlation({.rho = -0.5, .pairs = 1800}, usual), 0);
  EXPECT_EQ(serial_correlation({.rho = 1, .pairs = 9e6}, usual), 0.9);
}

TEST(Report, says_what_a_small_fleet_and_its_first_nights_can_see) {
  DriftReport report;
  report.coverage.units = 3;
  report.units = {{"learning", 3}};
  report.thresholds = {.h_small = 6, .h_large = 3, .cliff_history = 29};
  const Policy policy;
  const std::string small = sight_text(report, &policy);
  for (const char* words :
       {"3 of 3 units: judged from their visit 13 on; before it a large fall is watched, from visit 6",
        "flagged after about 12, 3, 2 visits", "from visit 30 on", "fewer than 4 units"})
    EXPECT_NE(small.find(words), std::string::npos) << words << "\n" << small;
  report.coverage.units = 40;
  report.units = {{"learning", 0}};
  const std::string large = sight_text(report, &policy);
  EXPECT_EQ(large.find("learning"), std::string::npos);
  EXPECT_EQ(large.find("fewer"), std::string::npos);
}

TEST(Report, calls_no_fleet_healthy_that_is_not_swept_or_has_no_unit) {
  DriftReport report;
  report.series = 4;
  report.coverage.units = 2;
  EXPECT_EQ(exit_code(report), 0);
  report.coverage.silent_nights = 12;
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_NE(summary_text(report).find("12 nights before this judgement: nothing is known"), std::string::npos);
  const auto again = read_report(report_text(report), "drift.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->coverage.silent_nights, 12);
  report.coverage = {};
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_NE(summary_text(report).find("nothing is watched: every unit is retired"), std::string::npos);
}

TEST(Drift, a_fleet_without_fault_raises_no_confirmed_flag) {
  std::size_t flags = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Seen seen = watch(120, 5, 90, {.sigma_spread = 0}, {}, seed);
    flags += seen.flags;
    for (const Flag& flag : seen.last.flags) EXPECT_NE(flag.state, UnitState::confirmed) << flag.words;
  }
  EXPECT_LE(flags, 4 * 2 * 78 / 30);  // at most two in 30 nights, of 78 that are judged
}

TEST(Drift, flags_without_a_fault_are_about_as_many_as_the_budget_says) {
  Policy policy;
  policy.false_flags.count = 20;
  std::size_t small = 0, ranked = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    small += watch(40, 25, 102, {.noise = rehearse::NoiseKind::t5}, policy, seed).flags;
    ranked += watch(400, 5, 102, {.noise = rehearse::NoiseKind::t5}, policy, seed).flags;
  }
  constexpr double kBudget = 4 * 20 * 90 / 30.0;  // 240
  for (const std::size_t flags : {small, ranked}) {
    EXPECT_GT(static_cast<double>(flags), 0.4 * kBudget);
    EXPECT_LT(static_cast<double>(flags), 1.5 * kBudget);
  }
}

TEST(Drift, of_the_flags_of_a_fleet_without_fault_a_thousandth_is_confirmed) {
  Policy policy;
  policy.false_flags.count = 20;
  policy.warmup = 4;  // short references err much: what is flagged is the unluckiest of many
  std::map<std::string, bool> confirmed;
  for (const auto noise : {rehearse::NoiseKind::gauss, rehearse::NoiseKind::t5}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Nights source({.nodes = 1000, .metrics = 5, .seed = seed}, {.noise = noise});
      Detector detector(source.fleet(), policy);
      for (int i = 0; i < 60; ++i) {
        detector.add(source.next());
        for (const auto& flag : detector.report().flags)
          confirmed[fmt::format("{} {} {}", noise, seed, flag.id)] |= flag.state == UnitState::confirmed;
      }
    }
  }
  const auto count = std::ranges::count_if(confirmed, [](const auto& one) { return one.second; });
  EXPECT_GT(confirmed.size(), 200U);
  EXPECT_LE(count, 1) << "of " << confirmed.size();
}

TEST(Drift, a_fleet_with_heavy_tails_does_not_either) {
  const Seen seen = watch(8, 30, 120, {.noise = rehearse::NoiseKind::t5, .sigma_spread = 0});
  EXPECT_LE(seen.flags, 2 * 108 / 30);
}

TEST(Drift, one_step_of_three_percent_names_that_unit_within_eight_nights) {
  NightFaults faults = only({.kind = NightFaultKind::step,
                             .unit = "n00017",
                             .metric = "simulated.m01",
                             .from_night = 40,
                             .sigma = 3,
                             .ratio = 0.97});
  faults.sigma_spread = 0;
  const Seen seen = watch(200, 3, 56, faults);
  ASSERT_EQ(seen.last.flags.size(), 1U);
  const Flag& flag = seen.last.flags.front();
  EXPECT_EQ(flag.unit, "node:n00017");
  EXPECT_EQ(flag.metric, "simulated.m01");
  EXPECT_LE(seen.raised_night, 48);
  const auto onset = (flag.onset - rehearse::NightsShape{}.first).count();
  EXPECT_NEAR(static_cast<double>(onset), 40, 2);
  EXPECT_NEAR(flag.ratio, 0.97, 0.01);
  EXPECT_EQ(flag.state, UnitState::confirmed);
  EXPECT_EQ(exit_code(seen.last), 1);
  const Arithmetic& a = flag.arithmetic;
  // The reference is a mean of n visits; what is taken out is a share rho of at most four deviations.
  EXPECT_LT(a.rho, 0.03);
  EXPECT_NEAR(a.T, (a.x - a.m) / (a.s * std::sqrt(1 + 1 / a.n)), 4 * a.rho + 1e-9);
}

TEST(Drift, a_step_of_the_whole_fleet_flags_no_unit_and_is_one_finding) {
  const Seen seen =
      watch(200, 1, 100, only({.kind = NightFaultKind::fleet_step, .from_night = 90, .sigma = 3}), strict());
  EXPECT_EQ(seen.flags, 0U);
  ASSERT_EQ(seen.last.fleet.size(), 1U);
  EXPECT_EQ(seen.last.fleet.front().kind, FleetFinding::Kind::step);
}

TEST(Drift, a_rollout_over_five_nights_flags_no_unit) {
  const Seen seen =
      watch(200, 2, 80, only({.kind = NightFaultKind::rollout, .from_night = 50, .sigma = 3, .p = 0.2}), strict());
  EXPECT_EQ(seen.flags, 0U);
}

TEST(Drift, a_new_part_begins_anew_and_is_not_flagged) {
  const Seen seen = watch(40, 2, 80, only({.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 50}));
  EXPECT_EQ(std::ranges::count(seen.units, "node:n00003-50"), 0);
  EXPECT_EQ(seen.last.coverage.units, 40U) << "the part that was taken out is not waited for";
}

TEST(Drift, a_new_part_that_is_slow_from_its_first_night_is_flagged_in_it_and_confirmed) {
  const NightFaults faults = {
      .faults =
          {{.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 50},
           {.kind = NightFaultKind::step, .unit = "n00003", .metric = "simulated.m00", .from_night = 50, .ratio = 0.8}},
      .unit_spread = 0.01};
  const Seen seen = watch(40, 2, 60, faults, strict());
  ASSERT_EQ(seen.units, std::vector<std::string>{"node:n00003-50"});
  EXPECT_EQ(seen.raised_night, 50);
  const Flag& flag = seen.last.flags.at(0);
  EXPECT_EQ(flag.rule, Rule::below_fleet);
  EXPECT_EQ(flag.state, UnitState::confirmed);
  EXPECT_NEAR(flag.ratio, 0.8, 0.05);
  EXPECT_TRUE(flag.words.starts_with("New here, it is at ")) << flag.words;
}

TEST(Drift, a_new_part_of_the_slower_kind_in_a_cohort_of_two_is_not_flagged) {
  NightFaults faults = only({.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 50});
  for (int i = 0; i < 8; ++i)
    faults.faults.push_back({.kind = NightFaultKind::step,
                             .unit = fmt::format("n{:05}", i),
                             .metric = "simulated.m00",
                             .from_night = 0,
                             .ratio = 0.9});
  faults.unit_spread = 0.002;
  EXPECT_EQ(std::ranges::count(watch(40, 2, 60, faults, strict()).units, "node:n00003-50"), 0);
}

TEST(Drift, a_new_part_within_the_levels_of_its_cohort_is_not_flagged) {
  const NightFaults faults = {
      .faults =
          {{.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 50},
           {.kind = NightFaultKind::step, .unit = "n00003", .metric = "simulated.m00", .from_night = 50, .ratio = 0.8},
           {.kind = NightFaultKind::step, .unit = "n00007", .metric = "simulated.m00", .from_night = 0, .ratio = 0.7}},
      .unit_spread = 0.002};
  EXPECT_EQ(std::ranges::count(watch(120, 1, 56, faults, strict()).units, "node:n00003-50"), 0);
}

TEST(Drift, a_new_part_that_is_slower_by_less_than_matters_is_not_flagged) {
  const NightFaults faults = {
      .faults = {{.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 50},
                 {.kind = NightFaultKind::step, .unit = "n00003", .from_night = 50, .ratio = 0.995}},
      .sigma = 2e-4,
      .sigma_spread = 0,
      .unit_spread = 3e-4};
  EXPECT_EQ(std::ranges::count(watch(40, 2, 56, faults, strict()).units, "node:n00003-50"), 0);
}

TEST(Drift, a_new_part_is_held_against_eight_units_of_which_none_is_flagged) {
  NightFaults faults = {.faults = {{.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 50},
                                   {.kind = NightFaultKind::step, .unit = "n00003", .from_night = 50, .ratio = 0.7}},
                        .unit_spread = 0.01};
  const auto flagged = [&] { return std::ranges::count(watch(8, 1, 56, faults, strict()).units, "node:n00003-50"); };
  EXPECT_EQ(flagged(), 1);
  faults.faults.push_back({.kind = NightFaultKind::step, .unit = "n00005", .from_night = 40, .ratio = 0.8});
  EXPECT_EQ(flagged(), 0);
}

TEST(Drift, visits_that_are_preempted_raise_nothing_and_leave_holes) {
  const Seen seen = watch(60, 3, 90, only({.kind = NightFaultKind::preempt, .from_night = 0, .sigma = 0, .p = 0.3}));
  EXPECT_LE(seen.flags, 4U);
  EXPECT_GT(seen.last.coverage.preempted, 0U);
  EXPECT_GT(seen.last.units.at("preempted"), 0U);
}

TEST(Drift, a_unit_that_is_never_measured_is_a_hole_in_coverage) {
  const Seen seen =
      watch(20, 1, 30, only({.kind = NightFaultKind::foreign_load, .unit = "n00004", .from_night = 10, .p = 1}));
  ASSERT_EQ(seen.last.coverage.overdue.size(), 1U);
  EXPECT_EQ(seen.last.coverage.overdue.front().unit, "node:n00004");
  EXPECT_EQ(seen.last.coverage.overdue.front().last_state, "busy");
  EXPECT_EQ(exit_code(seen.last), 3);
}

// Row e of the acceptance tests, its second half: a reference learned anew would be that of the fallen level.
TEST(Drift, a_part_that_falls_when_it_moves_to_another_slot_is_held_against_its_old_reference) {
  constexpr int kMoved = 60;
  Nights source({.nodes = 40, .metrics = 2},
                only({.unit = "n00003", .metric = "simulated.m00", .from_night = kMoved, .sigma = 8}));
  Detector detector(source.fleet(), strict());
  for (int i = 0; i < kMoved + 10; ++i) {
    Night night = source.next();
    if (i >= kMoved) {
      for (Visit& visit : night.visits) visit.slot = visit.unit == 3 ? "another" : visit.slot;
    }
    detector.add(night);
  }
  const auto report = detector.report();
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags.front().unit, "node:n00003");
  EXPECT_EQ(report.flags.front().slot, "another");
  EXPECT_EQ(report.units.at("learning"), 0U);
}

TEST(Drift, what_falls_at_times_only_is_intermittent) {
  NightFaults faults = only({.kind = NightFaultKind::flap,
                             .unit = "n00005",
                             .metric = "simulated.m00",
                             .from_night = 30,
                             .sigma = 6,
                             .p = 0.3});
  faults.sigma_spread = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Seen seen = watch(150, 1, 120, faults, {}, seed);
    const auto found = std::ranges::find(seen.last.flags, "node:n00005", &Flag::unit);
    ASSERT_NE(found, seen.last.flags.end());
    EXPECT_EQ(found->rule, Rule::intermittent);
    EXPECT_EQ(found->state, UnitState::confirmed);
  }
}

TEST(Drift, an_error_counts_at_once_and_is_confirmed_by_another) {
  const Seen seen = watch(
      20, 1, 40,
      only({.kind = NightFaultKind::counter, .unit = "n00002", .metric = "simulated.errors", .from_night = 30, .p = 1}),
      strict());
  ASSERT_EQ(seen.last.flags.size(), 1U);
  EXPECT_EQ(seen.raised_night, 30);
  EXPECT_EQ(seen.last.flags.front().rule, Rule::count);
  EXPECT_EQ(seen.last.flags.front().state, UnitState::confirmed);
}

TEST(Drift, constant_zero_and_broken_figures_do_no_harm) {
  Nights source({.nodes = 12, .metrics = 1}, {.sigma = 0, .unit_spread = 0, .night_spread = 0});
  Detector detector(source.fleet(), {});
  for (int i = 0; i < 40; ++i) {
    Night night = source.next();
    night.readings[0].value = 0;
    night.readings[1].value = -1;
    night.readings[2].value = std::nan("");
    if (i > 30) night.readings[3].value *= 0.5;
    detector.add(night);
  }
  const DriftReport report = detector.report();
  EXPECT_EQ(report.not_judged.size(), 3U);
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags.front().rule, Rule::state);
  EXPECT_TRUE(read_report(report_text(report), "drift.json").has_value());
}

}  // namespace
}  // namespace assay::drift
