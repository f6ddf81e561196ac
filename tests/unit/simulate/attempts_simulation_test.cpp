// Attempts and stages of a simulated run are those of a run.
#include <gtest/gtest.h>

#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate::attempts_simulation_test {
namespace {

constexpr const char* kThrice =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4}})";
constexpr const char* kThriceTogether =
    R"({"probe": "fabric", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"},
        "repeat": {"attempts": 3, "more_attempts": 4}})";

bool would_be_accepted(const Rehearsal& fleet) {
  return fleet.verdict.reason.find("it would be accepted") != std::string::npos;
}

std::size_t attempts_of(const Rehearsal& fleet, const std::string& step) {
  return fleet.run.journal.attempts.of(step).size();
}

}  // namespace

TEST(simulated_attempts, a_healthy_fleet_is_measured_in_three_passes_and_has_no_second_stage) {
  const Rehearsal fleet(plan_of({kThrice, kThriceTogether}, {.nodes = 8}));
  EXPECT_TRUE(would_be_accepted(fleet)) << fleet.verdict.reason;
  EXPECT_EQ(fleet.summary.attempts, 3U * 9U);
  EXPECT_FALSE(fleet.run.journal.second_stage);
  const double typical_s = fleet.plan.steps.front().typical_s;
  EXPECT_EQ(fleet.summary.duration_s, 3 * 2 * typical_s);
  const auto again = judge::read_journal(fleet.run.journal_text, "j");
  ASSERT_TRUE(again) << again.error().text();
}

TEST(simulated_attempts, what_a_bad_node_fails_is_measured_again_and_nothing_else) {
  const Rehearsal fleet(plan_of({kThrice, kThriceTogether}, {.nodes = 8},
                                {.faults = {{.node = "n00003", .metric = "bandwidth", .factor = 0.5}}}));
  EXPECT_TRUE(fleet.run.journal.second_stage);
  EXPECT_EQ(attempts_of(fleet, "0004-disk-n00003"), 7U);
  EXPECT_EQ(attempts_of(fleet, "0001-disk-n00000"), 3U);
  EXPECT_EQ(attempts_of(fleet, fleet.plan.steps.back().id), 7U);
  std::string lines;
  const auto handed_over = simulate(fleet.plan, "digest", [&](std::string_view line) { lines += line; });
  EXPECT_EQ(lines, fleet.run.journal_text);
  EXPECT_EQ(handed_over.journal_text, "");
  const auto again = judge::read_journal(fleet.run.journal_text, "j");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->more_attempts, fleet.run.journal.more_attempts);
  EXPECT_EQ(fleet.verdict.nodes.at(3).reason.rfind("SIMULATION; had it been measured, it would be rejected", 0), 0U);
}

TEST(simulated_attempts, a_node_that_is_bad_in_half_of_its_attempts_is_accepted_in_no_fleet_of_forty) {
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Rehearsal fleet(
        plan_of({kThrice}, {.nodes = 4}, {.faults = {{.node = "n00002", .factor = 0.5, .probability = 0.5}}}, seed));
    // When it was good three times, it was never seen bad: one in eight.
    const auto attempts = fleet.run.journal.attempts.of("0003-disk-n00002").size();
    if (would_be_accepted(fleet) && attempts > 3) ++accepted;
  }
  EXPECT_EQ(accepted, 0U);
}

TEST(simulated_attempts, a_collective_that_is_bad_in_every_other_attempt_is_not_accepted_once_it_was_seen_bad) {
  std::size_t seen = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Rehearsal fleet(plan_of({kThriceTogether}, {.nodes = 4},
                                  {.faults = {{.node = "n00002", .factor = 0.5, .probability = 0.5}}}, seed));
    if (!would_be_accepted(fleet)) ++seen;
  }
  EXPECT_GE(seen, 30U);  // of 40 one in eight is good three times; single attempts let half of them pass
}

}  // namespace assay::simulate::attempts_simulation_test
