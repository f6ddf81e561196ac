// The verdict of each node: its own cells, and its part in those of several nodes.
#include "orchestrator/judge/overall/node_verdicts.h"

#include <gtest/gtest.h>

#include "tests/unit/fixture.h"

namespace assay::judge::node_verdicts_test {
namespace {

constexpr const char* kAloneNode = R"({"limit": {"at_least": 100, "unit": "B/s"}})";

/// A plan of four nodes, alone and all together, and results of which every one passes.
struct NodeFleet {
  plan::Plan plan = *plan::make_plan(fixture::profile({kAloneNode, fixture::kWhole, fixture::kPairs}), fixture::site(4),
                                     fixture::programs(), {});
  Verdict verdict;

  NodeFleet() {
    for (const auto& cell : plan.coverage) {
      verdict.results.push_back({.requirement = cell.requirement,
                                 .subject = cell.subject,
                                 .node = cell.subject.id,
                                 .step = cell.step,
                                 .outcome = Outcome::pass,
                                 .reason = "Good.",
                                 .unit = "B/s"});
    }
  }

  Result& result(const std::string& requirement, const std::string& subject) {
    for (auto& one : verdict.results) {
      if (one.requirement == requirement && one.subject.id == subject) return one;
    }
    throw std::runtime_error("no cell of " + requirement + " on " + subject);
  }
  /// The cell of requirement r1, of all nodes.
  Result& whole() {
    for (auto& one : verdict.results) {
      if (one.requirement == "r1") return one;
    }
    throw std::runtime_error("no cell of the whole");
  }

  [[nodiscard]] std::vector<std::string> outcomes(bool finished = true) const {
    std::vector<std::string> all;
    for (const auto& node : node_verdicts(plan, finished, verdict)) all.emplace_back(to_string(node.outcome));
    return all;
  }
};

using Words = std::vector<std::string>;

}  // namespace

TEST(node_verdicts, a_fleet_of_which_every_cell_passes_is_accepted_node_by_node) {
  const NodeFleet fleet;
  const auto nodes = node_verdicts(fleet.plan, true, fleet.verdict);
  EXPECT_EQ(fleet.outcomes(), Words(4, "accepted"));
  EXPECT_EQ(nodes[0].required, 5U);  // alone, the whole, three pairs
  EXPECT_EQ(nodes[0].passed, 5U);
  EXPECT_EQ(nodes[0].reason, "");
  EXPECT_EQ(fleet_statement(nodes), "4 of 4 nodes accepted, 0 rejected, 0 incomplete");
}

TEST(node_verdicts, a_node_that_fails_or_is_open_alone_takes_no_other_with_it) {
  NodeFleet fleet;
  fleet.result("r0", "n2").outcome = Outcome::fail;
  fleet.result("r0", "n3").outcome = Outcome::inconclusive;
  EXPECT_EQ(fleet.outcomes(), (Words{"accepted", "rejected", "incomplete", "accepted"}));
  EXPECT_EQ(node_verdicts(fleet.plan, true, fleet.verdict)[1].reason, "r0 is fail: Good.");
}

TEST(node_verdicts, a_cell_of_several_nodes_counts_for_all_of_them_until_a_node_is_named) {
  NodeFleet fleet;
  fleet.whole().outcome = Outcome::fail;
  EXPECT_EQ(fleet.outcomes(), Words(4, "rejected"));
  Localised found{.requirements = {"r1"}, .step = fleet.whole().step, .state = SearchState::found, .reason = ""};
  found.culprits.push_back({.fault = Fault::node, .nodes = {"n3"}, .leaf = "", .tests = {}, .words = ""});
  fleet.verdict.localised.push_back(found);
  EXPECT_EQ(fleet.outcomes(), (Words{"accepted", "accepted", "rejected", "accepted"}));
  fleet.verdict.localised[0].undecided = {"n4"};
  EXPECT_EQ(fleet.outcomes(), (Words{"accepted", "accepted", "rejected", "incomplete"}));
  fleet.verdict.localised[0].undecided = {};
  fleet.verdict.localised[0].excluded = {"n1"};
  EXPECT_EQ(fleet.outcomes(), (Words{"incomplete", "accepted", "rejected", "accepted"}));
}

TEST(node_verdicts, a_bad_pair_is_a_matter_of_both_its_ends) {
  NodeFleet fleet;
  fleet.result("r2", "n1+n2").outcome = Outcome::fail;
  EXPECT_EQ(fleet.outcomes(), (Words{"rejected", "rejected", "accepted", "accepted"}));
  // That pair says nothing of one with another partner: its other end is not let off.
  Localised found{.requirements = {"r2"}, .step = "", .state = SearchState::found, .reason = ""};
  found.culprits.push_back({.fault = Fault::pair, .nodes = {"n1", "n2"}, .leaf = "", .tests = {}, .words = ""});
  fleet.verdict.localised.push_back(found);
  fleet.result("r2", "n1+n3").outcome = Outcome::fail;
  EXPECT_EQ(fleet.outcomes(), (Words{"rejected", "rejected", "rejected", "accepted"}));
}

TEST(node_verdicts, partners_of_a_node_that_the_pairs_name_are_not_held_responsible) {
  NodeFleet fleet;
  for (const char* pair : {"n1+n2", "n2+n3", "n2+n4"}) fleet.result("r2", pair).outcome = Outcome::fail;
  Localised found{.requirements = {"r2"}, .step = "", .state = SearchState::found, .reason = ""};
  found.culprits.push_back({.fault = Fault::node, .nodes = {"n2"}, .leaf = "", .tests = {}, .words = ""});
  fleet.verdict.localised.push_back(found);
  EXPECT_EQ(fleet.outcomes(), (Words{"accepted", "rejected", "accepted", "accepted"}));
}

TEST(node_verdicts, what_is_found_in_one_figure_lets_nobody_off_in_another) {
  NodeFleet fleet;
  fleet.result("r2", "n2+n3").outcome = Outcome::fail;
  Localised found{.requirements = {"r3"}, .step = "", .state = SearchState::found, .reason = ""};
  found.culprits.push_back({.fault = Fault::node, .nodes = {"n2"}, .leaf = "", .tests = {}, .words = ""});
  fleet.verdict.localised.push_back(found);
  EXPECT_EQ(fleet.outcomes(), (Words{"accepted", "rejected", "rejected", "accepted"}));
}

TEST(node_verdicts, nothing_is_accepted_where_the_whole_could_not_be) {
  NodeFleet fleet;
  EXPECT_EQ(fleet.outcomes(false), Words(4, "incomplete"));
  fleet.plan.only = {"r0"};
  EXPECT_EQ(fleet.outcomes(), Words(4, "incomplete"));
  fleet.plan.only = {};
  fleet.plan.quick = true;
  fleet.result("r0", "n2").outcome = Outcome::fail;
  EXPECT_EQ(fleet.outcomes(), Words(4, "incomplete"));
}

TEST(node_verdicts, a_simulation_says_what_it_would_be) {
  NodeFleet fleet;
  fleet.verdict.simulated = true;
  const auto nodes = node_verdicts(fleet.plan, true, fleet.verdict);
  EXPECT_EQ(nodes[0].outcome, Overall::incomplete);
  EXPECT_EQ(nodes[0].reason, "SIMULATION; had it been measured, it would be accepted.");
}

TEST(node_verdicts, they_are_in_the_verdict_with_their_number) {
  NodeFleet fleet;
  fleet.result("r0", "n2").outcome = Outcome::fail;
  for (const auto& outcome : words_of(Outcome{})) fleet.verdict.counts[std::string(outcome.text)] = 0;
  fleet.verdict.nodes = node_verdicts(fleet.plan, true, fleet.verdict);
  const std::string text = verdict_text(fleet.verdict);
  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document.at("fleet"), (nlohmann::json{{"accepted", 3}, {"rejected", 1}, {"incomplete", 0}}));
  EXPECT_EQ(document.at("nodes").at(1).at("outcome"), "rejected");
  const auto again = read_verdict(text, "v");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->nodes.at(1).node, "n2");
}

}  // namespace assay::judge::node_verdicts_test
