// What a run says of each node, and which exit code follows.
#include "orchestrator/sweep/outcome.h"

#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay::sweep {
namespace {

using drift::VisitState;

judge::Result cell(const std::string& id, const std::string& node, std::optional<double> value, double most) {
  judge::Result result{.requirement = id, .subject = {.kind = "node", .id = node}, .node = node};
  result.reason = "the probe broke";
  result.value = value;
  if (value) result.limit_high = most;
  return result;
}

/// A run of two steps, a figure and a check, on each node; every attempt ended as `outcome`.
judge::Run run_of(AttemptOutcome outcome = AttemptOutcome::exited, int nodes = 2) {
  judge::Run run;
  for (int i = 1; i <= nodes; ++i) {
    const std::string node = fmt::format("n{:02}", i);
    run.plan.site.nodes.push_back({.name = node});
    for (const auto& [probe, requirement] : {std::pair<std::string, std::string>{"figure", "memory.copy"},
                                             std::pair<std::string, std::string>{"health_load", "idle.cpu"}}) {
      run.plan.steps.push_back(
          {.id = probe + "-" + node, .probe = probe, .nodes = {node}, .requirements = {requirement}});
      run.journal.attempts.push_back({.step = probe + "-" + node, .node = node, .outcome = outcome});
    }
  }
  return run;
}

/// The load of both nodes, and a figure of each and of the two unless they have none for this reason.
judge::Verdict verdict_of(std::optional<double> first, std::optional<double> second, const std::string& why = "") {
  judge::Verdict verdict;
  verdict.results = {cell("idle.cpu", "n01", first, 0.02), cell("idle.cpu", "n02", second, 0.02)};
  for (const char* step : {"figure-n01", "figure-n02", "n01--n02"}) {
    judge::Result figure = cell("memory.copy", "n01", why.empty() ? std::optional(1.0) : std::nullopt, 2);
    figure.step = step;
    figure.unit = "B/s";
    if (!why.empty()) figure.reason = why;
    verdict.results.push_back(figure);
  }
  return verdict;
}

std::vector<VisitState> states(const std::vector<NodeVisit>& visits) {
  std::vector<VisitState> all;
  for (const auto& one : visits) all.push_back(one.state);
  return all;
}

const std::vector<std::string> kChecks = {"idle.cpu"};
const NightPair kPair{"n01", "n02"};

/// run_of, with a step of both nodes that ended as `outcome`.
judge::Run pair_run_of(AttemptOutcome outcome) {
  auto run = run_of();
  run.plan.steps.push_back(
      {.id = "n01--n02", .probe = "fabric", .nodes = {"n01", "n02"}, .requirements = {"fabric.rate"}});
  run.journal.attempts.push_back({.step = "n01--n02", .node = "n01", .outcome = outcome});
  return run;
}

}  // namespace

TEST(Outcome, a_node_that_others_use_is_busy_and_one_that_was_not_asked_is_not_measured) {
  const auto visits = not_idle(run_of(), verdict_of(0.3, std::nullopt), kChecks, false);
  ASSERT_EQ(visits.size(), 2U);
  EXPECT_EQ(states(visits), (std::vector{VisitState::busy, VisitState::not_measured}));
  EXPECT_EQ(visits[0].reason, "idle.cpu is 0.3 on node n01");
  EXPECT_EQ(visits[1].reason, "idle.cpu has no figure: the probe broke");
}

TEST(Outcome, an_idle_node_is_not_among_those_left_out) {
  EXPECT_TRUE(not_idle(run_of(), verdict_of(0.01, 0.02), kChecks, false).empty());
}

TEST(Outcome, a_check_that_has_no_cell_at_all_does_not_make_a_node_idle) {
  EXPECT_FALSE(idleness({}, kChecks, "n01").idle);
}

TEST(Outcome, figures_count_only_where_no_other_program_used_the_node_meanwhile) {
  const auto visits = visits_of(run_of(), verdict_of(0.001, 0.5), kChecks, false);
  EXPECT_EQ(states(visits), (std::vector{VisitState::measured, VisitState::busy}));
}

TEST(Outcome, figures_without_a_check_after_them_do_not_count) {
  const auto visits = visits_of(run_of(), verdict_of(0.001, std::nullopt), kChecks, false);
  EXPECT_EQ(states(visits), (std::vector{VisitState::measured, VisitState::not_measured}));
  EXPECT_EQ(visits[1].reason, "idle.cpu has no figure: the probe broke");
}

TEST(Outcome, a_node_on_which_only_the_checks_ran_is_not_measured_and_says_why) {
  auto run = run_of();
  const auto all = std::exchange(run.journal.attempts, {});
  for (const auto& attempt : all)
    if (attempt.step != "figure-n02") run.journal.attempts.push_back(attempt);
  run.journal.left_out["figure-n02"] = "/scratch on n02: 1 GB are free";
  const auto visits = visits_of(run, verdict_of(0.001, 0.001), kChecks, false);
  EXPECT_EQ(states(visits), (std::vector{VisitState::measured, VisitState::not_measured}));
  EXPECT_EQ(visits[1].reason, "/scratch on n02: 1 GB are free");
}

TEST(Outcome, a_node_on_which_every_probe_skipped_or_failed_is_not_measured_though_it_ended) {
  const auto visits = visits_of(run_of(), verdict_of(0.001, 0.001, "the probe skipped: no GPU"), kChecks, false);
  EXPECT_EQ(states(visits), std::vector(2, VisitState::not_measured));
  EXPECT_EQ(visits[0].reason, "the probe skipped: no GPU");
  EXPECT_EQ(exit_code(visits, {}, {}), 3);
  const auto run = pair_run_of(AttemptOutcome::exited);
  judge::Verdict verdict = verdict_of(0.01, 0.01);
  verdict.results.back().value.reset();
  const auto pair = pair_visit_of(kPair, run, verdict, kChecks, false);
  EXPECT_EQ(pair.state, VisitState::not_measured);
  EXPECT_EQ(pair.reason, "the probe broke");
}

// Row l: a tool that crashes is a fault of no node and no pass; unit_drift has that no flag follows.
TEST(Outcome, a_crash_of_every_probe_on_a_hundred_nodes_is_not_measured_and_exit_code_3) {
  constexpr int kNodes = 100;
  const auto visits =
      visits_of(run_of(AttemptOutcome::crashed, kNodes), verdict_of(std::nullopt, std::nullopt), kChecks, false);
  EXPECT_EQ(states(visits), std::vector(kNodes, VisitState::not_measured));
  EXPECT_EQ(visits[0].reason, "health_load: crashed");
  EXPECT_EQ(exit_code(visits, {}, {}), 3);
}

TEST(Outcome, a_node_with_open_steps_when_the_sweep_was_stopped_was_preempted) {
  auto run = run_of();
  run.journal.attempts.pop_back();
  const auto visits = visits_of(run, verdict_of(0.001, std::nullopt), kChecks, true);
  EXPECT_EQ(states(visits), (std::vector{VisitState::measured, VisitState::preempted}));
  EXPECT_EQ(visits[1].reason, "the sweep was stopped when 1 of 2 steps of the node had ended");
}

TEST(Outcome, the_last_event_of_a_lost_node_is_the_reason) {
  auto run = run_of(AttemptOutcome::lost);
  run.journal.node_events = {{.node = "n02", .time = "", .reason = "the connection was lost"}};
  EXPECT_EQ(visits_of(run, verdict_of(std::nullopt, std::nullopt), kChecks, false)[1].reason,
            "the connection was lost");
}

TEST(Outcome, busy_nodes_alone_are_no_hole_until_they_were_missed_too_often) {
  const std::vector<NodeVisit> visits = {{.node = "n01", .state = VisitState::measured},
                                         {.node = "n02", .state = VisitState::busy}};
  EXPECT_EQ(exit_code(visits, {}, {}), 0);
  EXPECT_EQ(exit_code(visits, {}, {"n02"}), 3);
}

TEST(Outcome, a_pair_was_measured_when_both_nodes_stayed_idle_and_a_step_of_both_ended) {
  const auto run = pair_run_of(AttemptOutcome::exited);
  EXPECT_EQ(pair_visit_of(kPair, run, verdict_of(0.01, 0.01), kChecks, false).state, VisitState::measured);
  const auto busy = pair_visit_of(kPair, run, verdict_of(0.01, 0.5), kChecks, false);
  EXPECT_EQ(busy.state, VisitState::busy);
  EXPECT_EQ(busy.reason, "n02: others used it meanwhile: idle.cpu is 0.5 on node n02");
}

TEST(Outcome, a_pair_whose_common_step_was_lost_is_not_measured_though_its_nodes_were) {
  const auto lost = pair_visit_of(kPair, pair_run_of(AttemptOutcome::lost), verdict_of(0.01, 0.01), kChecks, false);
  EXPECT_EQ(lost.state, VisitState::not_measured);
  EXPECT_EQ(lost.reason, "fabric: lost");
}

TEST(Outcome, a_pair_that_was_stopped_was_preempted) {
  auto run = pair_run_of(AttemptOutcome::exited);
  run.journal.attempts.pop_back();
  EXPECT_EQ(pair_visit_of(kPair, run, verdict_of(0.01, 0.01), kChecks, true).state, VisitState::preempted);
}

TEST(Outcome, a_preempted_pair_is_a_hole_and_a_busy_one_is_none) {
  const std::vector<NodeVisit> visits = {{.node = "n01", .state = VisitState::measured}};
  EXPECT_EQ(exit_code(visits, {{.pair = kPair, .state = VisitState::busy}}, {}), 0);
  EXPECT_EQ(exit_code(visits, {{.pair = kPair, .state = VisitState::preempted}}, {}), 3);
}

TEST(Outcome, the_first_line_counts_every_state) {
  const Night night(std::chrono::days(20'000));
  const std::vector<NodeVisit> visits = {
      {.node = "n01", .state = VisitState::measured}, {.node = "n02", .state = VisitState::busy}, {.node = "n03"}};
  EXPECT_EQ(summary(night, visits, {}), "night 2024-10-04: 1 of 3 due nodes measured, 1 busy, 1 not measured");
  EXPECT_EQ(summary(night, visits, {{.pair = kPair, .state = VisitState::preempted}}),
            "night 2024-10-04: 1 of 3 due nodes measured, 1 busy, 1 not measured; 0 of 1 pairs measured, 1 preempted");
}

}  // namespace assay::sweep
