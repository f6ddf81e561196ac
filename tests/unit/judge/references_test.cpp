// Fleets that are no measure: too small, masked by what is slow, or slow throughout.
#include <cmath>

#include <gtest/gtest.h>

#include "orchestrator/judge/cells/references.h"
#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/fixture.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;

constexpr const char* kPairsOfFleet = R"({"probe": "fabric", "scope": "pair", "rounds": 5,
                                   "limit": {"at_least": 0.8, "unit": "B/s", "of": "fleet_median"}})";
constexpr const char* kNodesOfFleet = R"({"limit": {"at_least": 0.8, "unit": "B/s", "of": "fleet_median"}})";

/// A fleet whose pairs reach 110 B/s, half of it where either node is among the first `slow`, or up to seven times
/// `apart` more.
Verdict verdict_of_pairs(int nodes, int slow, const std::vector<std::string>& requirements = {kPairsOfFleet},
                         double apart = 0) {
  MemoryRun run(requirements, nodes);
  const auto is_slow = [&](const std::string& node) { return std::stoi(node.substr(1)) <= slow; };
  for (std::size_t i = 0; i < run.plan.steps.size(); ++i) {
    const plan::Step& step = run.plan.steps[i];
    const double spread = 1 + 0.004 * std::sin(static_cast<double>(i));
    const double half = 55 + apart * static_cast<double>(i % 8);
    const double value = (is_slow(step.nodes[0]) || is_slow(step.nodes[1]) ? half : 110.0) * spread;
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
  return judge_run(run.plan, "digest", run.journal, run.reader()).value();
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
  EXPECT_TRUE(verdict.reason.starts_with("20 of 20 required cells pass. Relative only: 1 of 1 requirements, first r0"))
      << verdict.reason;
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

TEST(fleet, pairs_that_are_slow_by_different_amounts_do_not_widen_the_uncertainty_of_their_reference) {
  for (const auto& result : verdict_of_pairs(16, 6, {kPairsOfFleet}, 5).results)
    EXPECT_LT(result.terms.value().reference, 1) << result.subject.id << ": " << result.reason;
}

TEST(fleet, one_slow_node_is_its_own_fault) {
  const Verdict verdict = verdict_of_pairs(16, 1);
  EXPECT_GT(verdict.counts.at("pass"), 0U);
  EXPECT_EQ(verdict.counts.at("inconclusive"), 0U);
}

/// Nodes with four drives each, of which those of the first and, if `two`, of the second reach 80 of 110 B/s.
Verdict verdict_of_drives(int nodes, bool two) {
  constexpr const char* kDrives =
      R"({"scope": "drive", "limit": {"at_least": 0.9, "unit": "B/s", "of": "fleet_median"}})";
  constexpr int kDrivesEach = 4;
  MemoryRun run({kDrives}, nodes, {{"drive", kDrivesEach}});
  const std::vector<double> good(10, 110), slow(10, 80);
  for (std::size_t i = 0; i < run.plan.steps.size(); ++i) {
    const std::string& node = run.plan.steps[i].nodes.front();
    std::string record = run.record_of_drives(kDrivesEach, node == "n1" || (two && node == "n2") ? slow : good, node);
    run.attempt(i, "exited", record);
  }
  return judge(run.plan, "digest", run.journal, run.reader());
}

TEST(fleet, the_parts_of_one_slow_node_are_its_own_fault_and_those_of_two_are_a_common_cause) {
  const Verdict one = verdict_of_drives(8, false);
  EXPECT_EQ(one.overall, Overall::rejected);
  EXPECT_EQ(one.counts.at("fail"), 4U);
  EXPECT_EQ(one.counts.at("pass"), 28U) << one.results.back().reason;
  EXPECT_EQ(verdict_of_drives(8, true).counts.at("pass"), 0U);
  EXPECT_EQ(verdict_of_drives(7, false).counts.at("pass"), 0U) << "too few nodes to say whose fault it is";
}

TEST(fleet, a_fleet_that_is_slow_throughout_is_stopped_by_a_limit_beside_it) {
  EXPECT_EQ(verdict_of_pairs(8, 8).overall, Overall::accepted);  // and says that it is relative only
  const Verdict beside = verdict_of_pairs(
      8, 8,
      {kPairsOfFleet,
       R"({"probe": "fabric", "scope": "pair", "rounds": 5, "limit": {"at_least": 100, "unit": "B/s"}})"});
  EXPECT_EQ(beside.overall, Overall::rejected);
  EXPECT_EQ(beside.reason.find("Relative only"), std::string::npos) << beside.reason;
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

namespace {

/// A run of eight nodes of 110 B/s, give or take 1 %.
MemoryRun run_of_eight() {
  MemoryRun run({kNodesOfFleet}, 8);
  for (std::size_t i = 0; i < run.plan.steps.size(); ++i)
    run.attempt(i, "exited",
                run.record(run.plan.steps[i].nodes.front(),
                           std::vector<double>(10, 110 + 0.1 * static_cast<double>(i) - 0.35)));
  run.journal.end = "2026-11-01T10:00:00.000Z";
  return run;
}

plan::EarlierFleet lent_by(const MemoryRun& run, const plan::Plan& plan) {
  return fleet_of_run({.plan = run.plan, .plan_sha256 = "", .journal = run.journal}, run.reader(), plan, {"r0"});
}

/// The only result of one node that reaches `value`, held against `fleet`.
Result result_of_one(double value, const plan::EarlierFleet& fleet, std::string* deviation = nullptr) {
  MemoryRun run({kNodesOfFleet}, 1);
  run.plan = *plan::make_plan(run.plan.profile, run.plan.site, fixture::programs(),
                              {.continues = std::string(64, 'e'), .earlier_fleet = fleet});
  const std::string text = plan::plan_text(run.plan);
  const auto again = plan::read_plan(text, "plan.json");
  EXPECT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->earlier_fleet, fleet);
  run.attempt(0, "exited", run.record("n1", std::vector<double>(10, value)));
  const Verdict verdict = judge(run.plan, "digest", run.journal, run.reader());
  if (deviation != nullptr) *deviation = verdict.deviations.front().what;
  return verdict.results.at(0);
}

}  // namespace

TEST(fleet, of_an_earlier_run_is_the_reference_of_a_node_that_is_measured_again) {
  const MemoryRun earlier = run_of_eight();
  const plan::EarlierFleet fleet = lent_by(earlier, MemoryRun({kNodesOfFleet}, 1).plan);
  ASSERT_EQ(fleet.references.size(), 1U);
  EXPECT_EQ(fleet.references[0].members, 8U);
  EXPECT_NEAR(fleet.references[0].value, 110, 0.01);
  EXPECT_GT(fleet.references[0].uncertainty, 0);
  EXPECT_EQ(fleet.run_id, "run");
  std::string deviation;
  const Result good = result_of_one(109, fleet, &deviation);
  EXPECT_EQ(good.outcome, Outcome::pass) << good.reason;
  EXPECT_EQ(good.reference, fleet.references[0].value);
  EXPECT_NE(deviation.find("1 of its nodes are measured anew, and held against the fleet of its run run, ended "
                           "2026-11-01T10:00:00.000Z, journal "),
            std::string::npos)
      << deviation;
  EXPECT_NE(deviation.find(": r0 (of 8 members)."), std::string::npos) << deviation;
  EXPECT_EQ(result_of_one(80, fleet).outcome, Outcome::fail);
  EXPECT_NE(result_of_one(109, {}).outcome, Outcome::pass);
  plan::EarlierFleet small = fleet;
  small.references[0].members = 7;
  EXPECT_NE(result_of_one(109, small).outcome, Outcome::pass);
}

TEST(fleet, of_an_earlier_run_is_none_of_a_rehearsal_another_site_another_profile_or_members_that_are_apart) {
  const plan::Plan one = MemoryRun({kNodesOfFleet}, 1).plan;
  MemoryRun quick = run_of_eight();
  quick.plan.quick = true;
  EXPECT_TRUE(lent_by(quick, one).references.empty());
  MemoryRun other = run_of_eight();
  other.plan.site.name = "another";
  EXPECT_TRUE(lent_by(other, one).references.empty());
  EXPECT_TRUE(lent_by(run_of_eight(), MemoryRun({kNodesOfFleet, kPairsOfFleet}, 2).plan).references.empty());
  MemoryRun newer = run_of_eight();
  newer.plan.probes.at("disk").description.revision = 2;
  EXPECT_TRUE(lent_by(newer, one).references.empty());
  MemoryRun apart({kNodesOfFleet}, 8);
  for (std::size_t i = 0; i < apart.plan.steps.size(); ++i)
    apart.attempt(i, "exited",
                  apart.record(apart.plan.steps[i].nodes.front(), std::vector<double>(10, i % 2 == 0 ? 110.0 : 60.0)));
  EXPECT_TRUE(lent_by(apart, one).references.empty());
}

TEST(fleet, of_its_own_is_the_reference_where_it_is_large_enough_and_a_made_up_reference_is_refused) {
  const plan::EarlierFleet high{.run_id = "r",
                                .ended = "2026-11-01T10:00:00.000Z",
                                .journal_sha256 = std::string(64, 'd'),
                                .references = {{.requirement = "r0", .value = 500, .uncertainty = 1, .members = 9}}};
  MemoryRun run = run_of_eight();
  run.plan.continues = std::string(64, 'e');
  run.plan.earlier_fleet = high;
  EXPECT_EQ(judge(run.plan, "digest", run.journal, run.reader()).overall, Overall::accepted);
  MemoryRun absolute({R"({"limit": {"at_least": 100, "unit": "B/s"}})"}, 1);
  for (const bool continues : {false, true}) {
    const plan::Profile& profile = continues ? absolute.plan.profile : run.plan.profile;
    const auto plan = plan::make_plan(profile, absolute.plan.site, fixture::programs(),
                                      {.continues = continues ? std::string(64, 'e') : "", .earlier_fleet = high});
    const auto read = plan::read_plan(plan::plan_text(*plan), "plan.json");
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().text().find("has a reference of 'r0' that is none of a continued run"), std::string::npos);
  }
}

}  // namespace assay::judge
