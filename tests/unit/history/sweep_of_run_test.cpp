// Runs as sweeps: why a run left a node without a figure, which the outcome of its attempts decides and never the words
// of a reason; and a demanded condition as a state, night after night.
#include "orchestrator/history/sweep_of_run.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include <gtest/gtest.h>

#include "orchestrator/drift/detector.h"
#include "tests/unit/fixture.h"
#include "tests/unit/run_fixture.h"

namespace assay::history {
namespace {

/// The journal of one attempt on n1 that ended as `outcome` with `reason`.
judge::Journal journal_of(AttemptOutcome outcome, const std::string& reason) {
  judge::Journal journal;
  journal.attempts.push_back({.step = "0001-disk-n1", .node = "n1", .outcome = outcome, .reason = reason});
  return journal;
}

TEST(NodeWithoutFigures, is_not_busy_where_a_call_failed_with_EBUSY) {
  const auto journal =
      journal_of(AttemptOutcome::refused, std::string("the program cannot be stored: ") + std::strerror(EBUSY));
  ASSERT_NE(journal.attempts.front().reason.find("busy"), std::string::npos);
  EXPECT_EQ(state_without_figures(journal, "n1"), drift::VisitState::not_measured);
}

TEST(NodeWithoutFigures, is_not_preempted_where_a_reason_has_the_word) {
  EXPECT_EQ(state_without_figures(journal_of(AttemptOutcome::crashed, "preempted"), "n1"),
            drift::VisitState::not_measured);
}

TEST(NodeWithoutFigures, is_preempted_where_the_run_was_killed_in_its_attempt) {
  const auto journal = journal_of(AttemptOutcome::interrupted, "");
  EXPECT_EQ(state_without_figures(journal, "n1"), drift::VisitState::preempted);
  EXPECT_EQ(state_without_figures(journal, "n2"), drift::VisitState::not_measured);
}

constexpr int kNodes = 4;
constexpr drift::Date kFirst{std::chrono::days{20'000}};

/// `run` as a sweep of this night.
Sweep swept(const fixture::MemoryRun& run, int night, const std::string& folder) {
  const std::string directory = folder + "/" + std::to_string(night), text = plan::plan_text(run.plan);
  fixture::write(directory + "/plan.json", text);
  {
    judge::JournalWriter journal(directory + "/journal.jsonl");
    journal.write(judge::JournalEntry::run_begin("run-" + std::to_string(night), files::sha256(text)));
    for (const auto& node : run.plan.site.nodes)
      journal.write(judge::JournalEntry::node_up(node.name, {{"name", node.name}}));
    for (const auto& attempt : run.journal.attempts) {
      journal.write(judge::JournalEntry::attempt_begin(attempt.step, attempt.number, attempt.node));
      journal.write(judge::JournalEntry::attempt_end(attempt));
    }
    journal.write(judge::JournalEntry::run_end());
  }
  for (const auto& [path, bytes] : run.files) fixture::write(directory + "/" + path, bytes);
  auto sweep = sweep_of_run(directory, {});
  if (!sweep) throw std::runtime_error(sweep.error().error.text());
  sweep->night = kFirst + std::chrono::days{night};
  return *sweep;
}

/// The sweep of a run of four nodes that demands a driver of at least 580.82: the first node's record has `driver`, or
/// none, and the others' 590.10.
Sweep sweep_with(const std::optional<std::string>& driver, int night, const std::string& folder) {
  fixture::MemoryRun run(
      {R"({"scope": "node", "demand": {"name": "driver_version", "version": {"at_least": "580.82"}}})"}, kNodes);
  for (std::size_t i = 0; i < run.plan.steps.size(); ++i) {
    const plan::Step& step = run.plan.steps[i];
    std::ostringstream out;
    Recorder recorder(
        out, fixture::kSpec,
        {.probe = "disk", .revision = 1, .parameters = step.parameters, .host = {{"name", step.nodes.front()}}});
    recorder.measurement("mismatches", 0.0);
    const bool first = step.nodes.front() == "n1";
    if (!first || driver) recorder.condition("driver_version", first ? *driver : std::string("590.10"));
    recorder.end({.status = Status::complete, .reason = ""});
    run.attempt(i, "exited", out.str());
  }
  return swept(run, night, folder);
}

/// The state of n1 whose probe wrote a record with one size, and ended so with another.
std::optional<double> completeness(const std::string& outcome, bool has_figure = true) {
  const fixture::TemporaryFolder folder;
  fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})",
                          R"({"limit": {"at_least": 100, "unit": "B/s"}, "parameters": {"size": 8}})"});
  const auto record = [&](std::size_t step) {
    std::ostringstream out;
    Recorder recorder(out, fixture::kSpec,
                      {.probe = "disk",
                       .revision = 1,
                       .parameters = run.plan.steps.at(step).parameters,
                       .host = {{"name", std::string("n1")}}});
    recorder.measurement("mismatches", 0.0);
    recorder.end({.status = Status::complete, .reason = ""});
    return out.str();
  };
  if (has_figure) run.attempt(0, "exited", record(0));
  run.attempt(1, outcome, outcome == "exited" ? record(1) : "", outcome == "exited" ? "" : "it ended so");
  for (const auto& visit : swept(run, 0, folder.path()).visits) {
    for (const auto& figure : visit.figures) {
      if (figure.metric.name == "disk.run.complete") return figure.value;
    }
  }
  return std::nullopt;
}

/// The state of the demand in the visit of n1; nothing if it has none.
std::optional<double> state_of(const Sweep& sweep) {
  for (const auto& visit : sweep.visits) {
    if (visit.unit.node != "n1") continue;
    for (const auto& figure : visit.figures) {
      if (figure.metric.name == "disk.demand.r0") return figure.value;
    }
  }
  return std::nullopt;
}

/// Flags after these nights.
std::vector<drift::Flag> flags_after(const std::vector<std::optional<std::string>>& drivers) {
  const fixture::TemporaryFolder folder;
  auto history = History::open(folder.path() + "/h.db", Access::create);
  if (!history) throw std::runtime_error(history.error().error.text());
  int night = 0;
  for (const auto& driver : drivers) {
    if (const auto added = history->add(sweep_with(driver, night++, folder.path())); !added)
      throw std::runtime_error(added.error().error.text());
  }
  const drift::Fleet fleet = *history->fleet();
  const drift::Policy policy;
  drift::Detector detector(fleet, policy);
  (void)history->nights(kFirst, kFirst + std::chrono::days{night}, [&](const drift::Night& one) { detector.add(one); });
  return detector.report().flags;
}

TEST(DemandInNights, is_1_where_it_is_met_0_where_it_is_missed_and_nothing_where_nothing_was_recorded) {
  const fixture::TemporaryFolder folder;
  EXPECT_EQ(state_of(sweep_with("590.10", 0, folder.path())), 1);
  EXPECT_EQ(state_of(sweep_with("570.10", 1, folder.path())), 0);
  EXPECT_EQ(state_of(sweep_with(std::nullopt, 2, folder.path())), std::nullopt);
  EXPECT_EQ(state_of(sweep_with("580 MHz", 3, folder.path())), std::nullopt);
}

TEST(ProbesInNights, that_fail_on_a_node_with_other_figures_are_a_state_of_it) {
  EXPECT_EQ(completeness("exited"), 1);
  for (const char* outcome : {"crashed", "deadline", "memory_limit", "output_limit"})
    EXPECT_EQ(completeness(outcome), 0) << outcome;
  EXPECT_EQ(completeness("lost"), 1) << "nothing is known of an attempt whose node went away";
  EXPECT_EQ(completeness("crashed", false), std::nullopt) << "a node without a figure is not measured";
}

TEST(ProbesInNights, that_ended_on_a_node_have_the_units_that_they_read) {
  const fixture::TemporaryFolder folder;
  const Asked asked = sweep_with("590.10", 0, folder.path()).asked;
  EXPECT_EQ(asked.size(), std::size_t{kNodes});
  EXPECT_EQ(asked.at("n1"), (Asked::mapped_type{{"disk", {"node:n1"}}}));
}

TEST(DemandInNights, that_a_node_misses_from_one_night_on_is_a_flag_in_that_night) {
  EXPECT_TRUE(flags_after({"590.10", "590.10", "590.10", "590.20"}).empty());
  EXPECT_TRUE(flags_after({"590.10", "590.10", std::nullopt, std::nullopt}).empty());
  const auto flags = flags_after({"590.10", "590.10", "590.10", "570.10"});
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].node, "n1");
  EXPECT_EQ(flags[0].metric, "disk.demand.r0");
  EXPECT_EQ(flags[0].raised, kFirst + std::chrono::days{3});
  EXPECT_EQ(flags_after({"570.10"}).size(), 1U);
}

}  // namespace
}  // namespace assay::history
