// What is measured again after the planned attempts, and what a journal cannot make of it.
#include "orchestrator/judge/cells/second_stage.h"

#include <gtest/gtest.h>

#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/evidence/run_state.h"
#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/fixture.h"

namespace assay::judge::second_stage_test {
namespace {

using fixture::MemoryRun;

constexpr const char* kTwice =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2, "more_attempts": 2}})";
const std::vector<double> kGood(10, 110.0);
const std::vector<double> kBad(10, 50.0);

/// An attempt of the only step with these samples.
void attempt(MemoryRun& run, const std::vector<double>& samples) {
  run.attempt(0, "exited", run.record("n1", samples));
}

/// The second stage begins with the only step, whatever it needs.
void begin_second_stage(MemoryRun& run) {
  run.journal.second_stage = true;
  run.journal.more_attempts[run.plan.steps[0].id] = "the test says so";
}

Result only(const MemoryRun& run) { return judge_cells(run.plan, run.journal, run.reader()).at(0); }

SecondStage due(const MemoryRun& run) {
  return second_stage(run.plan, judge_cells(run.plan, run.journal, run.reader()));
}

std::string refusal(const MemoryRun& run) {
  const auto verdict = judge_run(run.plan, "digest", run.journal, run.reader());
  return verdict ? "" : verdict.error().text();
}

}  // namespace

TEST(second_stage, a_step_that_passes_is_left_alone) {
  MemoryRun run({kTwice});
  attempt(run, kGood);
  attempt(run, kGood);
  ASSERT_EQ(only(run).outcome, Outcome::pass);
  EXPECT_TRUE(due(run).empty());
}

TEST(second_stage, a_step_whose_required_cell_fails_is_measured_again_with_the_reason) {
  MemoryRun run({kTwice});
  attempt(run, kBad);
  attempt(run, kBad);
  EXPECT_EQ(due(run), (SecondStage{{"0001-disk-n1", "r0 on n1 is fail"}}));
}

TEST(second_stage, a_demand_that_fails_asks_for_no_more_attempts) {
  MemoryRun run({kTwice, R"({"demand": {"name": "direct_io", "equals": false}})"});
  attempt(run, kGood);
  attempt(run, kGood);
  ASSERT_EQ(judge_cells(run.plan, run.journal, run.reader()).at(1).outcome, Outcome::fail);
  EXPECT_TRUE(due(run).empty());
}

TEST(second_stage, a_step_that_was_never_measured_is_tried_again) {
  EXPECT_EQ(due(MemoryRun({kTwice})), (SecondStage{{"0001-disk-n1", "r0 on n1 is not_measured"}}));
}

TEST(second_stage, an_advisory_cell_or_a_step_without_more_attempts_is_not) {
  MemoryRun advisory(
      {R"({"limit": {"at_least": 100, "unit": "B/s"}, "severity": "advisory", "repeat": {"attempts": 2, "more_attempts": 2}})"});
  attempt(advisory, kBad);
  attempt(advisory, kBad);
  EXPECT_TRUE(due(advisory).empty());
  MemoryRun once({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  attempt(once, kBad);
  EXPECT_TRUE(due(once).empty());
}

TEST(second_stage, what_is_measured_after_the_load_follows_on_the_nodes_that_are_loaded_again) {
  MemoryRun run(
      {kTwice,
       R"({"metric": "mismatches", "statistic": "max", "after": true, "limit": {"at_most": 0, "unit": "1"}, "repeat": {"n": 1}})"},
      2);
  for (std::size_t i = 0; i < 4; ++i)
    run.attempt(i, "exited", run.record(run.plan.steps[i].nodes.front(), i == 0 ? kBad : kGood));
  run.attempt(0, "exited", run.record("n1", kBad));
  run.attempt(1, "exited", run.record("n2", kGood));
  const SecondStage chosen = due(run);
  EXPECT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen.at("0003-disk-n1"), "n1 is loaded once more");
}

TEST(second_stage, without_a_reading_after_its_load_what_is_judged_after_it_stays_open) {
  const auto after_the_load = [](const char* outcome, bool listed) {
    MemoryRun run(
        {kTwice,
         R"({"metric": "mismatches", "statistic": "max", "after": true, "limit": {"at_most": 0, "unit": "1"}, "repeat": {"n": 1}})",
         R"({"demand": {"name": "direct_io", "equals": true}, "after": true})"});
    const std::string& after = run.plan.steps.at(1).id;
    EXPECT_TRUE(run.plan.steps.at(1).after);
    attempt(run, kBad);
    attempt(run, kGood);
    run.attempt(1, "exited", run.record("n1", kGood));
    EXPECT_TRUE(due(run).contains(after));
    begin_second_stage(run);
    if (listed) run.journal.more_attempts[after] = "n1 is loaded once more";
    attempt(run, kGood);
    attempt(run, kGood);
    if (outcome != std::string("none"))
      run.attempt(1, outcome, outcome == std::string("exited") ? run.record("n1", kGood) : "");
    return run;
  };
  const auto outcomes = [](const MemoryRun& run) {
    const Results cells = judge_cells(run.plan, run.journal, run.reader());
    return std::vector{cells.at(1).outcome, cells.at(2).outcome};
  };
  using enum Outcome;
  EXPECT_EQ(outcomes(after_the_load("exited", true)), (std::vector{pass, pass}));
  EXPECT_EQ(outcomes(after_the_load("none", true)), (std::vector{inconclusive, inconclusive}));
  EXPECT_EQ(outcomes(after_the_load("lost", true)), (std::vector{inconclusive, inconclusive}));
  EXPECT_EQ(judge_cells(after_the_load("none", true).plan, after_the_load("none", true).journal,
                        after_the_load("none", true).reader())
                .at(1)
                .reason,
            "1 of 2 planned attempts were made.");
  EXPECT_EQ(refusal(after_the_load("exited", true)), "");
  EXPECT_NE(refusal(after_the_load("none", false)).find("in no second stage, which the attempts before it ask for"),
            std::string::npos);
}

TEST(second_stage, fewer_attempts_than_planned_decide_nothing) {
  MemoryRun run({kTwice});
  attempt(run, kGood);
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason, "1 of 2 required attempts measured.");
  attempt(run, kBad);
  begin_second_stage(run);
  attempt(run, kGood);
  EXPECT_EQ(only(run).reason, "3 of 4 planned attempts were made.");
}

TEST(second_stage, one_more_attempt_than_planned_is_refused_in_either_stage) {
  MemoryRun first({kTwice});
  for (int i = 0; i < 3; ++i) attempt(first, kGood);
  EXPECT_EQ(only(first).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(first).reason, "Attempt 3 on n1: 3 attempts where 2 were planned");
  MemoryRun second({kTwice});
  for (int i = 0; i < 2; ++i) attempt(second, kBad);
  begin_second_stage(second);
  for (int i = 0; i < 3; ++i) attempt(second, kGood);
  EXPECT_EQ(only(second).reason, "Attempt 5 on n1: 3 attempts where 2 were planned in the second stage");
}

TEST(second_stage, attempts_smuggled_into_the_first_stage_are_not_made_up_for_by_the_second) {
  MemoryRun run({kTwice});
  for (int i = 0; i < 3; ++i) attempt(run, kGood);
  begin_second_stage(run);
  attempt(run, kGood);
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(second_stage, a_journal_that_repeats_what_had_passed_is_refused) {
  MemoryRun run({kTwice});
  attempt(run, kGood);
  attempt(run, kGood);
  begin_second_stage(run);
  attempt(run, kGood);
  attempt(run, kGood);
  EXPECT_NE(refusal(run).find("measures 0001-disk-n1 in a second stage, which the attempts before it did not ask for"),
            std::string::npos)
      << refusal(run);
  MemoryRun asked({kTwice});
  attempt(asked, kBad);
  attempt(asked, kGood);
  begin_second_stage(asked);
  attempt(asked, kGood);
  attempt(asked, kGood);
  EXPECT_EQ(refusal(asked), "");
}

TEST(second_stage, a_crash_before_it_is_not_mended_by_it) {
  MemoryRun run({kTwice});
  run.attempt(0, "crashed", "", "signal 11");
  EXPECT_EQ(due(run).at("0001-disk-n1"), "r0 on n1 is error");
  begin_second_stage(run);
  attempt(run, kGood);
  attempt(run, kGood);
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(second_stage, the_journal_says_which_steps_and_refuses_attempts_of_others) {
  JournalLines lines(true);
  const std::string kTime = "2026-01-05T06:00:00.000Z";
  const auto begin = [&](const std::string& step, int number) {
    return lines.line(kTime, JournalEntry::attempt_begin(step, number, "n1"));
  };
  const auto end = [&](const std::string& step, int number) {
    Attempt attempt{.step = step, .number = number, .node = "n1", .outcome = AttemptOutcome::exited};
    return lines.line(kTime, JournalEntry::attempt_end(attempt));
  };
  const std::string head =
      lines.line(kTime, JournalEntry::run_begin("id", "digest"));  // the first line alone has the schema
  const std::string first = head + begin("0001-a", 1);
  const std::string text =
      first + end("0001-a", 1) + lines.line(kTime, JournalEntry::second_stage_begin({{"0001-a", "r0 on n1 is fail"}}));
  const auto journal = read_journal(text + begin("0001-a", 2) + end("0001-a", 2), "j");
  ASSERT_TRUE(journal) << journal.error().text();
  EXPECT_TRUE(journal->second_stage);
  EXPECT_EQ(journal->more_attempts, (SecondStage{{"0001-a", "r0 on n1 is fail"}}));
  EXPECT_FALSE(journal->attempts[0].second_stage);
  EXPECT_TRUE(journal->attempts[1].second_stage);
  const auto other = read_journal(text + begin("0002-b", 1), "j");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text().find("a second stage that it has no part in"), std::string::npos);
  EXPECT_FALSE(read_journal(text + lines.line(kTime, JournalEntry::second_stage_begin({})), "j"));
  EXPECT_FALSE(read_journal(first + lines.line(kTime, JournalEntry::second_stage_begin({})), "j"));
}

TEST(second_stage, progress_counts_attempts_and_passes_of_both_stages) {
  MemoryRun run({kTwice}, 2);
  run.journal.finished = false;
  EXPECT_EQ(progress_of(run.plan, run.journal).pass, 1);
  attempt(run, kBad);
  run.attempt(1, "exited", run.record("n2", kGood));
  RunProgress progress = progress_of(run.plan, run.journal);
  EXPECT_EQ(progress.attempts, 4);
  EXPECT_EQ(progress.attempts_ended, 2);
  EXPECT_EQ(progress.pass, 2);
  EXPECT_EQ(progress.steps_ended, 0U);
  attempt(run, kBad);
  run.attempt(1, "exited", run.record("n2", kGood));
  EXPECT_EQ(progress_of(run.plan, run.journal).steps_ended, 2U);
  begin_second_stage(run);
  attempt(run, kBad);
  progress = progress_of(run.plan, run.journal);
  EXPECT_EQ(progress.stage, plan::Stage::second);
  EXPECT_EQ(progress.attempts, 6);
  EXPECT_EQ(progress.attempts_ended, 5);
  EXPECT_EQ(progress.pass, 2);
  EXPECT_EQ(progress.steps_ended, 1U);
}

}  // namespace assay::judge::second_stage_test
