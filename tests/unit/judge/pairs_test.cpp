// Planned pairs that miss a limit: which node or which pair is named from the results alone.
#include "orchestrator/judge/locate/pairs.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/unit/judge/search_fleet.h"

namespace assay::judge {
namespace {

using fixture::Fleet;
using fixture::holds;
using fixture::kPairs;
using fixture::Names;
using fixture::with;
using fixture::with_both;

TEST(pair_matrix, a_node_that_is_short_with_every_partner_is_named) {
  const auto verdict = Fleet({kPairs}, 6, with("n3")).judged();
  ASSERT_EQ(verdict->localised.size(), 1U);
  EXPECT_EQ(verdict->localised[0].state, SearchState::found);
  ASSERT_EQ(verdict->localised[0].culprits.size(), 1U);
  EXPECT_EQ(verdict->localised[0].culprits[0].nodes, Names{"n3"});
  EXPECT_EQ(verdict->localised[0].culprits[0].tests.size(), 5U);
  EXPECT_NE(verdict->reason.find("At fault: node n3."), std::string::npos) << verdict->reason;
}

TEST(pair_matrix, two_bad_nodes_of_four_do_not_drag_the_good_ones_along) {
  const auto verdict =
      Fleet({kPairs}, 4, [](const Names& nodes) { return holds(nodes, "n1") || holds(nodes, "n2"); }).judged();
  std::set<std::string> named;
  for (const auto& culprit : verdict->localised.at(0).culprits)
    named.insert(culprit.nodes.begin(), culprit.nodes.end());
  EXPECT_EQ(named, (std::set<std::string>{"n1", "n2"}));
}

TEST(pair_matrix, a_pair_whose_ends_are_good_with_others_is_named_as_a_pair) {
  const auto verdict = Fleet({kPairs}, 6, with_both("n2", "n5")).judged();
  ASSERT_EQ(verdict->localised.at(0).culprits.size(), 1U);
  EXPECT_EQ(verdict->localised[0].culprits[0].fault, Fault::pair);
  EXPECT_EQ(verdict->localised[0].culprits[0].nodes, (Names{"n2", "n5"}));
}

TEST(pair_matrix, what_lies_within_the_guard_band_supports_an_accusation_and_makes_none) {
  const auto unsure = [](const Fleet& fleet, std::size_t sure) {
    auto results = fleet.judged()->results;
    std::size_t failed = 0;
    for (auto& result : results) {
      if (result.outcome == Outcome::fail && failed++ >= sure) result.outcome = Outcome::conditional_fail;
    }
    return localise_pairs(fleet.plan, results).at(0);
  };
  const auto pair = unsure(Fleet({kPairs}, 6, with_both("n2", "n5")), 0);
  EXPECT_TRUE(pair.culprits.empty());
  EXPECT_EQ(pair.state, SearchState::undecided);
  EXPECT_EQ(pair.reason,
            "1 of 15 pairs miss the limit; 1 of them by less than the guard band, which is not enough to name a node "
            "or a pair.");
  EXPECT_TRUE(unsure(Fleet({kPairs}, 6, with("n3")), 0).culprits.empty());
  const auto node = unsure(Fleet({kPairs}, 6, with("n3")), 1);
  ASSERT_EQ(node.culprits.size(), 1U) << "one that is sure, and four that agree with it";
  EXPECT_EQ(node.culprits[0].nodes, Names{"n3"});
}

TEST(pair_matrix, a_pair_that_broke_with_a_lost_node_says_nothing_of_the_other) {
  const Fleet fleet({kPairs}, 4, with_both("n2", "n3"));
  auto results = fleet.judged()->results;
  for (auto& result : results) {
    if (result.outcome == Outcome::fail) result.outcome = Outcome::error;
  }
  EXPECT_FALSE(localise_pairs(fleet.plan, results).empty());
  EXPECT_TRUE(localise_pairs(fleet.plan, results, {"n3"}).empty()) << "n3 is known to be gone, and n2 is not suspected";
}

TEST(pair_matrix, where_every_pair_is_short_no_node_is_accused) {
  const auto verdict = Fleet({kPairs}, 5, [](const Names&) { return true; }).judged();
  EXPECT_TRUE(verdict->localised.at(0).culprits.empty());
  EXPECT_EQ(verdict->localised[0].state, SearchState::undecided);
  EXPECT_EQ(verdict->localised[0].undecided.size(), 5U);
}

TEST(pair_matrix, one_round_of_pairs_does_not_tell_which_of_two_it_is) {
  constexpr const char* kOneRound =
      R"({"probe": "fabric", "scope": "pair", "rounds": 1, "limit": {"at_least": 100, "unit": "B/s"}})";
  const auto verdict = Fleet({kOneRound}, 6, with("n3")).judged();
  EXPECT_TRUE(verdict->localised.at(0).culprits.empty());
  EXPECT_EQ(verdict->localised[0].undecided.size(), 2U);
}

}  // namespace
}  // namespace assay::judge
