// Attempts: which of them decide a cell, which are replaced or set aside, and what they say together.
#include <cmath>

#include <gtest/gtest.h>

#include "orchestrator/judge/cells/judge.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;
using namespace test;

/// A requirement that is measured three times, and up to four times more.
constexpr const char* kThrice =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4}})";
/// The same, whose number says nothing while the page cache is in use, which is not the disk's fault.
constexpr const char* kThriceAlone =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4},
        "conditions": [{"name": "direct_io", "equals": true, "surroundings": true}]})";

/// The second stage begins with the only step, whatever it needs.
void begin_second_stage(MemoryRun& run) {
  run.journal.second_stage = true;
  run.journal.more_attempts[run.plan.steps[0].id] = "the test says so";
}

}  // namespace

TEST(attempts, a_node_lost_once_needs_an_attempt_in_its_place) {
  MemoryRun run({kThrice});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.attempt(0, "lost", "", "the connection broke");
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason, "2 of 3 required attempts measured; the node was lost in one.");
  begin_second_stage(run);
  for (int i = 0; i < 4; ++i) run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::pass);
  EXPECT_EQ(only(run).each.size(), 6U);
  EXPECT_EQ(judged(run).deviations.size(), 1U);
}

TEST(attempts, a_node_lost_twice_in_one_step_is_a_finding) {
  MemoryRun run({kThrice});
  run.attempt(0, "lost", "", "the connection broke");
  run.attempt(0, "lost", "", "the connection broke");
  run.attempt(0, "exited", run.record("n1", kSteady110));
  begin_second_stage(run);
  for (int i = 0; i < 4; ++i) run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(attempts, a_node_lost_and_never_measured_is_an_error) {
  MemoryRun run({kThrice});
  run.attempt(0, "lost", "", "the connection broke");
  EXPECT_EQ(only(run).outcome, Outcome::error);
}

TEST(attempts, attempts_are_what_decides_not_their_samples) {
  MemoryRun run({kThrice});
  // Each run is steady to the last digit, and the next one is somewhere else.
  for (const double value : {101.0, 103.0, 105.0})
    run.attempt(0, "exited", run.record("n1", std::vector<double>(40, value)));
  const Result result = only(run);
  EXPECT_EQ(result.each, (std::vector<double>{101, 103, 105}));
  EXPECT_EQ(*result.value, 103);
  EXPECT_NEAR(*result.uncertainty, 2 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(*result.degrees_of_freedom, 2);
  EXPECT_EQ(result.outcome, Outcome::conditional_pass);
}

TEST(attempts, each_of_them_needs_its_samples) {
  MemoryRun run({kThrice});
  for (const std::size_t samples : {10U, 10U, 9U})
    run.attempt(0, "exited", run.record("n1", std::vector<double>(samples, 110)));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason, "9 samples measured in attempt 3; 10 are required.");
}

TEST(attempts, fewer_attempts_than_planned_decide_nothing) {
  MemoryRun run({kThrice});
  for (int i = 0; i < 2; ++i) run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason, "2 of 3 required attempts measured.");
}

TEST(attempts, an_attempt_that_others_disturbed_is_set_aside_and_another_takes_its_place) {
  MemoryRun run({kThriceAlone});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.attempt(0, "exited", run.record("n1", std::vector<double>(10, 60.0), false));
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason,
            "2 of 3 required attempts measured under the required surroundings; attempt 2 was not: The page "
            "cache took part: name a directory on a local file system that can do direct I/O, with --directory.");
  begin_second_stage(run);
  for (int i = 0; i < 4; ++i) run.attempt(0, "exited", run.record("n1", kSteady110));
  const Verdict verdict = judged(run);
  const Result& result = verdict.results.at(0);
  EXPECT_EQ(result.outcome, Outcome::pass);
  EXPECT_EQ(result.each, std::vector<double>(6, 110));
  ASSERT_EQ(result.set_aside.size(), 1U);
  EXPECT_EQ(result.set_aside[0].attempt, 2);
  ASSERT_EQ(verdict.deviations.size(), 1U);
  EXPECT_EQ(verdict.deviations[0].what,
            "Attempt 2 was set aside: The page cache took part: name a directory on a local file system that can do "
            "direct I/O, with --directory.");
  EXPECT_EQ(verdict.deviations[0].step, run.plan.steps[0].id);
}

TEST(attempts, more_attempts_set_aside_than_may_be_accept_nothing) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 1},
                     "conditions": [{"name": "direct_io", "equals": true, "surroundings": true}]})"});
  run.plan.steps[0].attempts = 5;  // as another requirement of the step wants
  for (const bool direct : {false, false, true, true, true})
    run.attempt(0, "exited", run.record("n1", kSteady110, direct));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_NE(only(run).reason.find("2 attempts are set aside where 1 may be"), std::string::npos) << only(run).reason;
}

TEST(attempts, what_another_requirement_of_the_step_may_set_aside_counts_for_it_alone) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 1},
                     "conditions": [{"name": "direct_io", "equals": true, "surroundings": true}]})"});
  run.plan.steps[0].attempts = 3;
  run.plan.steps[0].more_attempts = 4;
  for (const bool direct : {false, true, true}) run.attempt(0, "exited", run.record("n1", kSteady110, direct));
  begin_second_stage(run);
  for (const bool direct : {false, false, true, true}) run.attempt(0, "exited", run.record("n1", kSteady110, direct));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_NE(only(run).reason.find("3 attempts are set aside where 1 may be"), std::string::npos) << only(run).reason;
}

TEST(attempts, any_other_condition_unmet_in_one_attempt_is_inconclusive) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4},
                     "conditions": [{"name": "direct_io", "equals": true}]})"});
  for (const bool direct : {true, false, true}) run.attempt(0, "exited", run.record("n1", kSteady110, direct));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_TRUE(only(run).set_aside.empty());
}

TEST(attempts, a_count_of_errors_keeps_what_a_disturbed_attempt_saw) {
  MemoryRun run({R"({"metric": "raw_bandwidth", "statistic": "max", "repeat": {"n": 1, "attempts": 2},
                     "limit": {"at_most": 0, "unit": "B/s"},
                     "conditions": [{"name": "direct_io", "equals": true, "surroundings": true}]})"});
  run.plan.steps[0].attempts = 3;
  run.plan.steps[0].more_attempts = 1;
  run.attempt(0, "exited", run.record("n1", kSteady110, true, {0}));
  run.attempt(0, "exited", run.record("n1", kSteady110, false, {5}));
  run.attempt(0, "exited", run.record("n1", kSteady110, true, {0}));
  EXPECT_EQ(*only(run).value, 5);
  EXPECT_NE(only(run).outcome, Outcome::pass);
}

TEST(attempts, a_number_below_nothing_is_refused) {
  MemoryRun run({R"({"metric": "raw_bandwidth", "statistic": "max", "repeat": {"n": 1},
                     "limit": {"at_most": 0, "unit": "B/s"}})"});
  run.attempt(0, "exited", run.record("n1", kSteady110, true, {-1}));
  EXPECT_EQ(only(run).outcome, Outcome::error);
  EXPECT_EQ(only(run).reason,
            "A sample of raw_bandwidth is -1, and no raw_bandwidth is below 0: the record is refused.");
}

TEST(attempts, a_third_of_the_samples_at_nothing_is_no_pass) {
  MemoryRun run({kThrice});
  std::vector<double> stalling(50, 110.0);
  for (std::size_t i = 0; i < 17; ++i) stalling[3 * i] = 0;
  for (int i = 0; i < 3; ++i) run.attempt(0, "exited", run.record("n1", stalling));
  const Result result = only(run);
  EXPECT_EQ(*result.value, 110);
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].kind, FindingKind::stalled);
  EXPECT_TRUE(result.findings[0].opens);
  EXPECT_EQ(result.reason, "Not decided: 51 of 150 samples are under half of the median.");
}

TEST(attempts, eight_nodes_and_more_share_what_they_say_of_how_runs_differ) {
  MemoryRun run({kThrice}, 8);
  const std::vector<double> runs = {106, 107, 108};
  for (std::size_t node = 0; node < 8; ++node) {
    for (const double value : runs)
      run.attempt(node, "exited", run.record("n" + std::to_string(node + 1), std::vector<double>(10, value)));
  }
  const Verdict verdict = judged(run);
  EXPECT_EQ(verdict.results[0].between_steps, 8U);
  EXPECT_EQ(*verdict.results[0].degrees_of_freedom, 16);
  EXPECT_NEAR(*verdict.results[0].guard_factor, 2.1199, 1e-3);  // t(0.975, 16)
  // One step alone is judged by its own attempts.
  Journal part;
  for (const auto& attempt : run.journal.attempts) {
    if (attempt.step == run.plan.steps[0].id) part.attempts.push_back(attempt);
  }
  part.node_facts["n1"] = run.journal.node_facts["n1"];
  const auto results = judge_step(run.plan, run.plan.steps[0], {run.plan.coverage[0]}, part, run.reader());
  EXPECT_EQ(results.at(0).between_steps, 0U);
  EXPECT_EQ(*results.at(0).degrees_of_freedom, 2);
}

TEST(attempts, findings_and_attempts_set_aside_are_read_back) {
  MemoryRun run({kThriceAlone});
  std::vector<double> stalling(50, 110.0);
  for (std::size_t i = 0; i < 17; ++i) stalling[3 * i] = 0;
  run.attempt(0, "exited", run.record("n1", stalling, false));
  for (int i = 0; i < 2; ++i) run.attempt(0, "exited", run.record("n1", stalling));
  begin_second_stage(run);
  for (int i = 0; i < 4; ++i) run.attempt(0, "exited", run.record("n1", stalling));
  const std::string text = verdict_text(judged(run));
  const auto again = read_verdict(text, "v");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->results[0].findings[0].kind, FindingKind::stalled);
  EXPECT_EQ(again->results[0].set_aside[0].attempt, 1);
  EXPECT_EQ(verdict_text(*again), text);
}

}  // namespace assay::judge
