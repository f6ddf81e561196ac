// A node that lies in its records: it loses its own cells and moves those of no other node.
#include <gtest/gtest.h>

#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;
using namespace test;

}  // namespace

TEST(lying_node, a_node_that_makes_up_subjects_loses_its_own_cells_alone) {
  constexpr const char* kShare =
      R"({"scope": "drive", "limit": {"at_least": 0.9, "unit": "B/s", "of": "fleet_median"}})";
  for (const double lie : {1000.0, 0.1}) {
    MemoryRun run({kShare}, 5, {{"drive", 2}});
    for (const char* node : {"n1", "n2", "n3", "n4"})
      run.attempt(std::string_view(node).back() - '1', "exited", run.record_of_drives(2, kSteady110, node));
    run.attempt(4, "exited", run.record_of_drives(50, std::vector<double>(10, lie), "n5"));
    const Verdict verdict = judged(run);
    ASSERT_EQ(verdict.results.size(), 9U) << lie;
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(verdict.results[i].reference, 110) << lie;
      EXPECT_EQ(verdict.results[i].outcome, Outcome::pass) << lie;
    }
    EXPECT_EQ(verdict.results[8].outcome, Outcome::error);
    EXPECT_EQ(verdict.results[8].reason, "The record has 50 subjects of kind drive; the design has 2.");
  }
}

TEST(lying_node, a_node_with_many_more_subjects_than_the_others_does_not_move_their_median) {
  constexpr const char* kShare =
      R"({"scope": "drive", "severity": "advisory", "limit": {"at_least": 0.9, "unit": "B/s", "of": "fleet_median"}})";
  MemoryRun run({kShare}, 5);
  for (const char* node : {"n1", "n2", "n3", "n4"})
    run.attempt(std::string_view(node).back() - '1', "exited", run.record_of_drives(2, kSteady110, node));
  run.attempt(4, "exited", run.record_of_drives(50, std::vector<double>(10, 1000.0), "n5"));
  EXPECT_EQ(judged(run).results.at(0).reference, 110);
}

TEST(lying_node, a_made_up_node_in_a_record_is_an_error_of_its_node) {
  MemoryRun run({kAtLeast100}, 2);
  run.attempt(0, "exited", run.record("n1", kSteady110));
  std::string lie = run.record("n2", kSteady110);
  const std::string own = R"("subject":{"node":"n2"})";
  lie.replace(lie.find(own), own.size(), R"("subject":{"node":"n9"})");
  run.attempt(1, "exited", lie);
  const Verdict verdict = judged(run);
  EXPECT_EQ(verdict.results.at(0).outcome, Outcome::pass);
  EXPECT_EQ(verdict.results.at(1).outcome, Outcome::error);
  EXPECT_NE(verdict.results.at(1).reason.find("is of the node 'n9', the record is of 'n2'"), std::string::npos);
}

TEST(lying_node, a_long_reason_of_a_node_is_cut_in_the_verdict) {
  MemoryRun run({kAtLeast100});
  std::string record = run.record("n1", kSteady110);
  const std::string end = R"({"status":"complete"})";
  record.replace(record.find(end), end.size(), R"({"status":"error","reason":")" + std::string(4096, 'x') + "\"}");
  run.attempt(0, "exited", record);
  EXPECT_EQ(only(run).outcome, Outcome::error);
  EXPECT_EQ(only(run).reason.size(), 1000U);
}

}  // namespace assay::judge
