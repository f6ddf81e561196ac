// Why a run left a node without a figure: the outcome of its attempts decides, never the words of a reason.
#include "orchestrator/history/sweep_of_run.h"

#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace assay::history
