// Rehearsed months: fresh tests of the same night, as a real sweep makes them.
#include <gtest/gtest.h>

#include "orchestrator/simulate/rehearsal.h"

namespace assay::simulate {
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
}  // namespace assay::simulate
