// Rehearsed months: fresh tests of the same night, as a real sweep makes them.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "orchestrator/rehearse/rehearsal.h"

namespace assay::rehearse {
namespace {

NightFaults only(NightFault fault) { return {.faults = {std::move(fault)}}; }

drift::Policy strict() {
  drift::Policy policy;
  policy.false_flags.count = 0.001;
  return policy;
}

/// What became of a fault of one node among 40, with so many sets of fresh tests a night.
struct Seen {
  int raised = -1, confirmed = -1;  ///< nights
  std::size_t tests = 0;
  drift::Rule rule = drift::Rule::small_shift;
};

Seen watch(NightFault fault, int rounds, const drift::Policy& policy = strict()) {
  Nights nights({.nodes = 40, .metrics = 2}, only(std::move(fault)));
  Rehearsal rehearsal(nights, policy, rounds);
  Seen seen;
  for (int i = 0; i < 90; ++i) {
    const auto sweeps = rehearsal.next();
    for (std::size_t s = 1; s < sweeps.size(); ++s) seen.tests += sweeps[s].visits.size();
    for (const auto& flag : rehearsal.report().flags) {
      if (flag.unit != "node:n00003" || i < 60) continue;
      if (seen.raised < 0) {
        seen.raised = i;
        seen.rule = flag.rule;
      }
      if (seen.confirmed < 0 && flag.state == drift::UnitState::confirmed) seen.confirmed = i;
    }
  }
  return seen;
}

NightFault step(double sigma) {
  return {.kind = NightFaultKind::step, .unit = "n00003", .metric = "simulated.m00", .from_night = 60, .sigma = sigma};
}

TEST(Rehearsal, a_cliff_needs_the_fresh_tests_of_its_night) {
  const Seen with = watch(step(12), 3, {});
  EXPECT_EQ(with.raised, 60);
  EXPECT_EQ(with.rule, drift::Rule::cliff);
  EXPECT_GE(with.tests, 3U);
  const Seen without = watch(step(12), 0, {});
  EXPECT_GT(without.raised, 60);
  EXPECT_EQ(without.tests, 0U);
}

TEST(Rehearsal, fresh_tests_confirm_a_flag_in_fewer_nights) {
  const Seen with = watch(step(4), 3);
  const Seen without = watch(step(4), 0);
  ASSERT_GE(with.confirmed, 0);
  ASSERT_GE(without.confirmed, 0);
  EXPECT_LT(with.confirmed - with.raised, without.confirmed - without.raised);
  EXPECT_GT(with.confirmed, with.raised);  // one test is always of another night
}

/// Flags of 15 fleets of 32 nodes without fault, 60 nights each, and how many of them are cliffs.
std::pair<std::size_t, std::size_t> false_flags(NoiseKind noise, double rho) {
  std::size_t flags = 0, cliffs = 0;
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    Nights nights({.nodes = 32, .metrics = 10, .seed = seed}, {.noise = noise, .rho = rho});
    Rehearsal rehearsal(nights, {}, 3);
    std::set<std::string> seen;
    for (int i = 0; i < 60; ++i) {
      rehearsal.next();
      for (const auto& flag : rehearsal.report().flags) {
        if (!seen.insert(flag.id).second) continue;
        EXPECT_EQ(nights.cause_of(flag), FlagCause::no_fault);
        cliffs += flag.rule == drift::Rule::cliff ? 1 : 0;
      }
    }
    flags += seen.size();
  }
  return {flags, cliffs};
}

TEST(Rehearsal, false_flags_stay_within_the_budget_where_nights_follow_each_other) {
  constexpr double kBudget = 30;  // one in 30 nights
  const double most = kBudget + 2 * std::sqrt(kBudget);
  for (const auto noise : {NoiseKind::gauss, NoiseKind::t5}) {
    for (const double rho : {0.0, 0.2, 0.4}) {
      const auto [flags, cliffs] = false_flags(noise, rho);
      EXPECT_LE(static_cast<double>(flags), most) << word_of(noise) << " " << rho;
      EXPECT_LE(cliffs, 10U) << "a fifth of the budget: " << word_of(noise) << " " << rho;
    }
  }
}

TEST(Rehearsal, a_fall_before_the_warm_up_is_over_is_watched_and_then_flagged) {
  Nights nights({.nodes = 32, .metrics = 10}, only({.unit = "n00003", .from_night = 7, .ratio = 0.93}));
  Rehearsal rehearsal(nights, {}, 3);
  for (int i = 0; i < 12; ++i) rehearsal.next();
  EXPECT_EQ(rehearsal.report().states.at("node:n00003"), drift::UnitState::watch);
  EXPECT_EQ(rehearsal.report().units.at("steady"), 0U);
  EXPECT_EQ(drift::summary_text(rehearsal.report()).find("nothing to do"), std::string::npos);
  const drift::Policy policy;
  const std::string sight = drift::sight_text(rehearsal.report(), &policy);
  EXPECT_NE(sight.find("judged from their visit 13 on"), std::string::npos) << sight;
  for (int i = 12; i < 24; ++i) rehearsal.next();
  EXPECT_EQ(rehearsal.report().states.at("node:n00003"), drift::UnitState::confirmed);
  EXPECT_EQ(drift::sight_text(rehearsal.report(), &policy).find("learning"), std::string::npos);
}

TEST(Rehearsal, a_flag_is_of_a_fault_in_its_metric_and_from_its_night_on) {
  const Nights nights({.nodes = 5, .metrics = 2},
                      {.faults = {{.unit = "n00003", .metric = "simulated.m00", .from_night = 60},
                                  {.kind = NightFaultKind::counter, .unit = "n00001", .from_night = 5},
                                  {.kind = NightFaultKind::fleet_step, .from_night = 5}}});
  const auto cause = [&](const char* node, const char* metric, int night) {
    drift::Flag flag;
    flag.node = node;
    flag.metric = metric;
    flag.raised = NightsShape{}.first + std::chrono::days(night);
    return nights.cause_of(flag);
  };
  EXPECT_EQ(cause("n00003", "simulated.m00", 60), FlagCause::fault);
  EXPECT_EQ(cause("n00003", "simulated.m00", 59), FlagCause::before_fault);
  EXPECT_EQ(cause("n00003", "simulated.m01", 70), FlagCause::other_metric);
  EXPECT_EQ(cause("n00002", "simulated.m00", 70), FlagCause::no_fault);
  EXPECT_EQ(cause("n00001", "simulated.errors", 5), FlagCause::fault);
  EXPECT_EQ(cause("n00001", "simulated.m00", 9), FlagCause::other_metric);
}

TEST(Rehearsal, without_tests_it_is_the_detector_on_the_same_nights) {
  Nights first({.nodes = 20, .metrics = 2}, only(step(8)));
  Nights second({.nodes = 20, .metrics = 2}, only(step(8)));
  Rehearsal rehearsal(first, {}, 0);
  drift::Detector detector(second.fleet(), {});
  for (int i = 0; i < 80; ++i) {
    rehearsal.next();
    detector.add(second.next());
  }
  EXPECT_EQ(drift::report_text(rehearsal.report()), drift::report_text(detector.report()));
}

TEST(Rehearsal, the_nights_of_the_fleet_are_the_same_with_tests_and_without) {
  Nights tested({.nodes = 20, .metrics = 2}, only(step(8)));
  Nights plain({.nodes = 20, .metrics = 2}, only(step(8)));
  Rehearsal rehearsal(tested, {}, 3);
  for (int i = 0; i < 70; ++i) {
    const drift::Night one = rehearsal.next().front();
    const drift::Night other = plain.next();
    ASSERT_EQ(one.readings.size(), other.readings.size());
    for (std::size_t r = 0; r < one.readings.size(); ++r) ASSERT_EQ(one.readings[r].value, other.readings[r].value);
  }
}

TEST(Rehearsal, a_test_has_noise_of_its_own_and_the_faults_of_the_night) {
  Nights nights({.nodes = 5, .metrics = 1}, only(step(30)));
  drift::Night night;
  for (int i = 0; i <= 60; ++i) night = nights.next();
  const drift::Night one = nights.retests({"n00003"}, 0);
  const drift::Night other = nights.retests({"n00003"}, 1);
  ASSERT_EQ(one.readings.size(), 1U);
  EXPECT_EQ(one.date, night.date);
  EXPECT_TRUE(one.visits[0].retest);
  EXPECT_NE(one.visits[0].run_sha256, other.visits[0].run_sha256);
  EXPECT_NE(one.readings[0].value, other.readings[0].value);
  EXPECT_NE(one.readings[0].value, night.readings[3].value);
  EXPECT_LT(one.readings[0].value, 0.9 * night.readings[2].value);
  EXPECT_TRUE(nights.retests({"n00099"}, 0).visits.empty());
}

TEST(Rehearsal, a_node_that_was_not_measured_tonight_is_not_tested_either) {
  Nights nights({.nodes = 5, .metrics = 1},
                only({.kind = NightFaultKind::foreign_load, .unit = "n00001", .from_night = 0, .p = 1}));
  nights.next();
  EXPECT_TRUE(nights.retests({"n00001"}, 0).visits.empty());
  EXPECT_EQ(nights.retests({"n00002"}, 0).visits.size(), 1U);
}

}  // namespace
}  // namespace assay::rehearse
