// Which pairs have jobs tonight: those of a sweep that visits all nodes at once.
#include "orchestrator/sweep/pairs.h"

#include <set>

#include <gtest/gtest.h>

#include "orchestrator/sweep/due.h"
#include "tests/unit/fixture.h"

namespace assay::sweep {
namespace {

using drift::VisitState;

constexpr const char* kAlone = R"({"limit": {"at_least": 1, "unit": "B/s"}})";
constexpr const char* kOneRound =
    R"({"probe": "fabric", "scope": "pair", "rounds": 1, "limit": {"at_least": 100, "unit": "B/s"}})";

/// The plan of `nodes` nodes in the order of the night.
plan::Plan plan_of(int nodes, int night, const std::vector<std::string>& requirements = {kAlone, kOneRound}) {
  const site::Site site = fixture::site(nodes);
  std::vector<std::string> names;
  for (const auto& node : site.nodes) names.push_back(node.name);
  site::Site tonight = site;
  tonight.nodes.clear();
  for (const auto& name : rotated(names, Night(std::chrono::days(20'000 + night))))
    tonight.nodes.push_back(*site.node(name));
  return plan::make_plan(fixture::profile(requirements), tonight, fixture::programs(), {.localise = false}).value();
}

NodeVisit visit(const char* node, VisitState state) { return {.node = node, .state = state, .reason = "a reason"}; }

}  // namespace

TEST(NightPairs, over_as_many_nights_as_there_are_rounds_every_node_meets_every_other_once) {
  std::set<NightPair> met;
  std::size_t pairs = 0;
  for (int night = 0; night < 7; ++night) {
    std::set<std::string> tonight;
    for (const auto& pair : pairs_of(plan_of(8, night))) {
      EXPECT_TRUE(tonight.insert(pair.first).second && tonight.insert(pair.second).second);
      met.insert(std::min(pair, NightPair{pair.second, pair.first}));
      ++pairs;
    }
    EXPECT_EQ(tonight.size(), 8U);
  }
  EXPECT_EQ(pairs, 28U);
  EXPECT_EQ(met.size(), 28U);
}

TEST(NightPairs, two_probes_of_a_pair_are_one_pair_and_steps_of_more_nodes_are_none) {
  const auto plan = plan_of(4, 0, {kAlone, kOneRound, kOneRound, fixture::kWhole});
  EXPECT_EQ(pairs_of(plan).size(), 2U);
  EXPECT_EQ(joint_requirements(plan), (std::vector<std::string>{"r1", "r2", "r3"}));
}

TEST(NightPairs, names_are_read_back_and_what_names_no_two_nodes_is_none) {
  EXPECT_EQ(pair_named(name_of({"n01", "n02"})), (NightPair{"n01", "n02"}));
  EXPECT_EQ(pair_named("n01,n02", ','), (NightPair{"n01", "n02"}));
  for (const char* text : {"", "n01", "+n02", "n01+", "n01+n01", "n01+n02+n03", "../x+n02", "n01+n 2"})
    EXPECT_FALSE(pair_named(text)) << text;
}

TEST(NightPairs, a_pair_is_what_its_worse_node_is) {
  const NightPair pair{"n01", "n02"};
  EXPECT_FALSE(hindered(pair, {visit("n01", VisitState::measured), visit("n02", VisitState::measured)}));
  EXPECT_FALSE(hindered(pair, {visit("n03", VisitState::busy)}));
  const auto busy = hindered(pair, {visit("n01", VisitState::not_measured), visit("n02", VisitState::busy)});
  EXPECT_EQ(busy, (PairVisit{.pair = pair, .state = VisitState::busy, .reason = "n02: a reason"}));
  EXPECT_EQ(hindered(pair, {visit("n01", VisitState::busy), visit("n02", VisitState::preempted)})->state,
            VisitState::preempted);
}

TEST(NightPairs, nodes_whose_partner_was_not_measured_are_left_for_each_other) {
  const std::vector<NightPair> pairs = {{"n01", "n02"}, {"n03", "n04"}, {"n05", "n06"}};
  EXPECT_EQ(without_partner({"n01", "n02", "n03", "n06", "n07"}, pairs),
            (std::vector<std::string>{"n03", "n06", "n07"}));
}

}  // namespace assay::sweep
