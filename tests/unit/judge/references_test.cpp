// Fleets that are no measure: too small, masked by what is slow, or slow throughout.
#include <cmath>

#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/fixture.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;

constexpr const char* kPairsOfFleet = R"({"probe": "fabric", "scope": "pair", "rounds": 5,
                                   "limit": {"at_least": 0.8, "unit": "B/s", "of": "fleet_median"}})";
constexpr const char* kNodesOfFleet = R"({"limit": {"at_least": 0.8, "unit": "B/s", "of": "fleet_median"}})";

/// A fleet whose pairs reach 110 B/s, half of it where either node is among the first `slow`.
Verdict verdict_of_pairs(int nodes, int slow, const std::vector<std::string>& requirements = {kPairsOfFleet}) {
  MemoryRun run(requirements, nodes);
  const auto is_slow = [&](const std::string& node) { return std::stoi(node.substr(1)) <= slow; };
  for (std::size_t i = 0; i < run.plan.steps.size(); ++i) {
    const plan::Step& step = run.plan.steps[i];
    const double spread = 1 + 0.004 * std::sin(static_cast<double>(i));
    const double value = (is_slow(step.nodes[0]) || is_slow(step.nodes[1]) ? 55.0 : 110.0) * spread;
    for (int rank = 0; rank < 2; ++rank) {
      std::ostringstream out;
      Recorder recorder(out, fixture::kFabricSpec,
                        {.probe = "fabric",
                         .revision = 1,
                         .parameters = step.parameters,
                         .rank = rank,
                         .world = 2,
                         .host = {{"name", step.nodes[static_cast<std::size_t>(rank)]}}});
      if (rank == 0)
        recorder.measurement("bandwidth",
                             Sampling{.samples = std::vector<double>(10, value), .warmup = {}, .stopped = "fixed"},
                             {"pair", "a+b"});
      recorder.end({.status = Status::complete, .reason = ""});
      rank == 0 ? run.attempt(i, "exited", out.str()) : run.add_rank(1, out.str());
    }
  }
  return judge(run.plan, "digest", run.journal, run.reader());
}

Verdict verdict_of_nodes(const std::vector<double>& values,
                         const std::vector<std::string>& requirements = {kNodesOfFleet}) {
  MemoryRun run(requirements, static_cast<int>(values.size()));
  for (std::size_t i = 0; i < run.plan.steps.size(); ++i)
    run.attempt(i, "exited", run.record(run.plan.steps[i].nodes.front(), std::vector<double>(10, values[i])));
  return judge(run.plan, "digest", run.journal, run.reader());
}

}  // namespace

TEST(fleet, three_nodes_with_a_slow_one_are_not_accepted) {
  const Verdict verdict = verdict_of_pairs(3, 1);
  EXPECT_EQ(verdict.overall, Overall::incomplete);
  EXPECT_NE(verdict.reason.find("Needs 8 pairs for comparison; only 3 took part"), std::string::npos);
}

TEST(fleet, a_good_fleet_of_eight_is_accepted_and_called_relative) {
  const Verdict verdict = verdict_of_pairs(8, 0);
  EXPECT_EQ(verdict.overall, Overall::accepted) << verdict.reason;
  EXPECT_NE(verdict.reason.find("relative only: 1 of 1 requirements, first r0"), std::string::npos) << verdict.reason;
}

TEST(fleet, nodes_that_are_slow_are_found_up_to_half_of_them_and_more_are_not_accepted) {
  for (const int slow : {1, 5, 8}) {
    const Verdict verdict = verdict_of_pairs(16, slow);
    EXPECT_EQ(verdict.overall, Overall::rejected) << slow << verdict.reason;
  }
  EXPECT_NE(verdict_of_pairs(16, 10).overall, Overall::accepted);
}

TEST(fleet, the_pairs_that_would_pass_beside_many_slow_nodes_are_a_common_cause) {
  const Verdict verdict = verdict_of_pairs(16, 5);
  EXPECT_EQ(verdict.counts.at("pass"), 0U);
  const auto held = std::ranges::find(verdict.results, Outcome::inconclusive, &Result::outcome);
  ASSERT_NE(held, verdict.results.end());
  EXPECT_TRUE(held->reason.starts_with(
      "Common cause: 5 of 16 members of the fleet are more than 10 % from its reference, so it is no measure of the "
      "others: n1, n2, n3, n4, n5."))
      << held->reason;
}

TEST(fleet, one_slow_node_is_its_own_fault) {
  const Verdict verdict = verdict_of_pairs(16, 1);
  EXPECT_GT(verdict.counts.at("pass"), 0U);
  EXPECT_EQ(verdict.counts.at("inconclusive"), 0U);
}

TEST(fleet, a_fleet_that_is_slow_throughout_is_stopped_by_a_limit_beside_it) {
  EXPECT_EQ(verdict_of_pairs(8, 8).overall, Overall::accepted);  // and says that it is relative only
  const Verdict beside = verdict_of_pairs(
      8, 8,
      {kPairsOfFleet,
       R"({"probe": "fabric", "scope": "pair", "rounds": 5, "limit": {"at_least": 100, "unit": "B/s"}})"});
  EXPECT_EQ(beside.overall, Overall::rejected);
  EXPECT_EQ(beside.reason.find("relative only"), std::string::npos) << beside.reason;
}

TEST(fleet, members_that_are_all_apart_are_no_measure) {
  const Verdict verdict = verdict_of_nodes({100, 92, 108, 95, 105, 98, 102, 107, 93, 100});
  EXPECT_EQ(verdict.counts.at("pass"), 0U);
  EXPECT_NE(verdict.results.at(0).reason.find("Common cause: the members of the fleet are"), std::string::npos)
      << verdict.results.at(0).reason;
}

TEST(fleet, two_of_ten_that_are_far_off_are_a_common_cause) {
  const Verdict verdict = verdict_of_nodes({110, 110, 111, 109, 110, 110, 111, 109, 85, 80});
  EXPECT_EQ(verdict.overall, Overall::rejected);
  EXPECT_EQ(verdict.counts.at("pass"), 0U);
}

}  // namespace assay::judge
