// The searches of a simulated run are those of a measured one, and leave a journal that can be judged.
#include <gtest/gtest.h>

#include "tests/unit/judge/search_fleet.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate {
namespace {

TEST(simulate, a_measured_run_with_the_same_outcomes_asks_for_the_same_tests) {
  const plan::Faults faults{
      .faults = {{.node = "n00003", .factor = 0.5}, {.node = "n00010", .other = "n00020", .factor = 0.5}},
      .healthy = {.spread = 0, .run_to_run = 0}};
  const plan::Plan plan = plan_of({kByRack, kTogether}, {.nodes = 24, .per_rack = 12, .per_leaf = 6}, faults);
  plan::Plan measured = plan;
  measured.simulation.reset();
  const auto is_short = [](const std::vector<std::string>& nodes) {
    return fixture::holds(nodes, "n00003") || (fixture::holds(nodes, "n00010") && fixture::holds(nodes, "n00020"));
  };
  const auto rehearsed = tests_in(Rehearsal(plan).run.journal);
  EXPECT_GT(rehearsed.size(), 5U);
  EXPECT_EQ(rehearsed, tests_in(fixture::Fleet(measured, is_short).search().journal));
}

TEST(simulate, a_journal_with_extra_tests_is_read_back_and_judged_to_the_same_verdict) {
  const Rehearsal fleet(plan_of({kTogether}, {.nodes = 16}, {.faults = {{.node = "n00003", .factor = 0.5}}}));
  const auto journal = judge::read_journal(fleet.run.journal_text, "journal.jsonl");
  ASSERT_TRUE(journal) << journal.error().text();
  const auto again = judge::judge_run(fleet.plan, "digest", *journal, simulated_evidence(fleet.plan, *journal));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(judge::verdict_text(*again), judge::verdict_text(fleet.verdict));
}

TEST(simulate, a_test_on_nodes_that_its_step_does_not_have_has_no_evidence) {
  const plan::Plan plan = plan_of({kTogether}, {.nodes = 4});
  judge::Journal journal;
  journal.attempts = {{.step = plan.steps[0].id + ".t001", .nodes = {"n00000", "n00009"}, .purpose = "screening"}};
  const auto bytes = simulated_evidence(plan, journal)({.path = judge::record_path(plan.steps[0].id + ".t001", 1)});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().what, "is not a record that a simulation makes");
}

}  // namespace
}  // namespace assay::simulate
