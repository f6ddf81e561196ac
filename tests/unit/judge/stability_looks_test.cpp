// The interruptions of a soak along the boundaries that were agreed on: what accepts, refuses, and decides nothing.
#include "orchestrator/judge/cells/stability_looks.h"

#include <functional>

#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/soak.h"

namespace assay::judge::stability_looks_test {
namespace {

using fixture::SoakRun;

/// Attempts of all nodes with these interruptions.
void all(SoakRun& run, const std::vector<int>& interruptions) {
  for (const int one : interruptions) run.add_all(one);
}

/// Dates the last attempt: it lasted until `end` of that day by a clock that jumped.
void until(SoakRun& run, const char* end, double jumped_s = 0) {
  run.journal.attempts.change_last([&](Attempt& last) {
    last.begin = "2026-01-05T00:00:00.000Z";
    last.end = std::string("2026-01-05T") + end + ":00.000Z";
    last.jumped_s = jumped_s;
  });
}

/// Two attempts of all nodes; the last one of each lasted until `end`.
void dated(SoakRun& run, const char* end, double jumped_s = 0) {
  all(run, {0});
  for (const std::size_t node : {0U, 1U, 2U, 3U}) {
    run.add(node, {});
    until(run, end, jumped_s);
  }
}

struct Case {
  std::function<void(SoakRun&)> make;
  Outcome outcome;
  std::string words;
  Overall overall = Overall::incomplete;
};

std::vector<Case> whole_attempts() {
  using enum Outcome;
  return {
      {[](SoakRun& run) {
         all(run, {0, 0});
       },
       pass, "0 interruptions in 94.08 h under load: look 2 of 6, after 24 h of each node, accepts up to 0.",
       Overall::accepted},
      {[](SoakRun& run) {
         all(run, {1, 0, 0, 0});
       },
       pass, "look 4 of 6, after 48 h of each node, accepts up to 1.", Overall::accepted},
      {[](SoakRun& run) { all(run, {0}); }, inconclusive, "decide nothing after 1 of 6 looks"},
      {[](SoakRun& run) { all(run, {3}); }, fail, "look 1 of 6, after 12 h of each node, refuses from 3.",
       Overall::rejected},
      {[](SoakRun& run) { all(run, {5}); }, fail, "at most 4 are tolerated", Overall::rejected},
      // What comes after the boundary counts, as far as it was measured.
      {[](SoakRun& run) {
         all(run, {0, 0, 5});
       },
       fail, "at most 4 are tolerated", Overall::rejected},
      {[](SoakRun&) {}, inconclusive, "decide nothing after 0 of 6 looks; n1 has 0 whole attempts"},
  };
}

/// Records of 12 h at 0.98 in attempts that lasted long enough by the head's clock, or did not.
std::vector<Case> dated_attempts() {
  using enum Outcome;
  const std::string words = "the record is of 4.234e+04 s under load, and the attempt lasted ";
  return {
      {[](SoakRun& run) { dated(run, "11:46"); }, pass, "look 2 of 6", Overall::accepted},
      {[](SoakRun& run) { dated(run, "00:46", -39'600); }, pass, "look 2 of 6", Overall::accepted},
      {[](SoakRun& run) { dated(run, "11:30"); }, inconclusive, words + "4.14e+04 s by the head's clock"},
      {[](SoakRun& run) { dated(run, "00:00"); }, inconclusive, words + "0 s by the head's clock"},
      {[](SoakRun& run) { dated(run, "11:46", 39'600); }, inconclusive, words + "2760 s by the head's clock"},
  };
}

/// A node that went away, one whose head was killed, and one that was not under load end the path of all.
std::vector<Case> broken_attempts() {
  using enum Outcome;
  return {
      {[](SoakRun& run) {
         all(run, {0});
         for (const std::size_t node : {0U, 1U, 2U}) run.add(node, {});
         run.add(3, {}, "lost");
       },
       inconclusive, "after 1 of 6 looks; n4 has 1 whole attempts"},
      {[](SoakRun& run) {
         all(run, {0});
         for (const std::size_t node : {0U, 1U, 2U}) run.add(node, {});
         run.add(3, {}, "interrupted");
         run.add(3, {});
       },
       inconclusive, "n4 has 1 whole attempts: Attempt 2 is no whole one"},
      {[](SoakRun& run) {
         all(run, {0});
         for (const std::size_t node : {0U, 1U, 2U}) run.add(node, {});
         run.add(3, {}, "deadline");
       },
       inconclusive, "n4 has 1 whole attempts"},
      {[](SoakRun& run) {
         for (const std::size_t node : {0U, 1U, 2U}) run.add(node, {});
         run.add(3, {.load_share = 0.5});
         all(run, {0, 0});
       },
       inconclusive, "n4 has 0 whole attempts: Attempt 1 was under load for 0.5 of its time", Overall::rejected},
      {[](SoakRun& run) {
         for (const std::size_t node : {0U, 1U, 2U}) run.add(node, {});
         run.add(3, {.silent = -1});
         all(run, {0, 0});
       },
       inconclusive, "has no count of interruptions of each class"},
      {[](SoakRun& run) {
         all(run, {0});
         for (const std::size_t node : {0U, 1U, 2U}) run.add(node, {});
       },
       inconclusive, "after 1 of 6 looks; n4 has 1 whole attempts"},
  };
}

void hold(const std::vector<Case>& cases) {
  for (const auto& one : cases) {
    SoakRun run;
    one.make(run);
    const Verdict verdict = judge(run.plan, "digest", run.journal, run.reader());
    const Result& whole = verdict.results.back();
    EXPECT_EQ(whole.subject.kind, "cluster");
    EXPECT_EQ(whole.outcome, one.outcome) << one.words << "\n" << whole.reason;
    EXPECT_NE(whole.reason.find(one.words), std::string::npos) << one.words << "\n" << whole.reason;
    EXPECT_EQ(verdict.overall, one.overall) << one.words << "\n" << verdict.reason;
    EXPECT_EQ(judge_stability(run.plan, run.journal, run.reader()).reason, whole.reason);
  }
}

}  // namespace

TEST(stability_looks, accept_and_refuse_where_the_path_of_all_nodes_meets_a_boundary) { hold(whole_attempts()); }

TEST(stability_looks, decide_nothing_by_attempts_that_broke_off) { hold(broken_attempts()); }

TEST(stability_looks, count_no_hours_that_the_heads_clock_has_not_seen) { hold(dated_attempts()); }

TEST(stability_looks, are_of_every_node_and_of_no_run_without_an_agreement) {
  SoakRun run;
  all(run, {0, 0});
  const auto verdict = judge_run(run.plan, "digest", run.journal, run.reader());
  ASSERT_TRUE(verdict) << verdict.error().text();
  EXPECT_EQ(verdict->overall, Overall::accepted) << verdict->reason;
  for (const auto& node : verdict->nodes) EXPECT_EQ(node.required, 3U) << node.node;
  const auto again = read_verdict(verdict_text(*verdict), "verdict.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->results.back().each, (std::vector<double>{0, 0}));
  run.plan.agreed_stability.reset();
  EXPECT_EQ(judge(run.plan, "digest", run.journal, run.reader()).results.size(), verdict->results.size() - 1);
}

}  // namespace assay::judge::stability_looks_test
