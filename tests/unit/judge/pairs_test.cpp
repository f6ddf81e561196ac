// Planned pairs that miss a limit: which node or which pair is named from the results alone.
#include "orchestrator/judge/locate/pairs.h"

#include <set>

#include <gtest/gtest.h>

#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/judge/overall/verdict_table.h"
#include "tests/unit/judge/search_fleet.h"

namespace assay::judge {
namespace {

using fixture::Fleet;
using fixture::holds;
using fixture::kPairs;
using fixture::Names;
using fixture::with;
using fixture::with_both;

constexpr const char* kPairsAgain =
    R"({"probe": "fabric", "scope": "pair", "limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3}})";

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
  const auto verdict = Fleet({kPairsAgain}, 6, with_both("n2", "n5")).judged();
  ASSERT_EQ(verdict->localised.at(0).culprits.size(), 1U);
  EXPECT_EQ(verdict->localised[0].culprits[0].fault, Fault::pair);
  EXPECT_EQ(verdict->localised[0].culprits[0].nodes, (Names{"n2", "n5"}));
}

TEST(pair_matrix, a_pair_that_was_short_once_or_not_again_is_no_finding) {
  const auto once = Fleet({kPairs}, 6, with_both("n2", "n5")).judged()->localised.at(0);
  EXPECT_TRUE(once.culprits.empty());
  EXPECT_EQ(once.state, SearchState::undecided);
  EXPECT_EQ(once.reason,
            "1 of 15 pairs miss the limit; 1 of them not in every attempt, or in too few, so no path is named: measure "
            "again.");
  const Fleet fleet({kPairsAgain}, 6, with_both("n2", "n5"));
  auto results = fleet.judged()->results;
  for (auto& result : results) {
    if (result.outcome == Outcome::fail) result.each.back() = 110;
  }
  EXPECT_TRUE(localise_pairs(fleet.plan, results).at(0).culprits.empty());
}

TEST(pair_matrix, a_pair_that_breaks_again_is_named_and_one_that_broke_once_is_not) {
  const Fleet fleet({kPairsAgain}, 6, with_both("n2", "n5"));
  auto results = fleet.judged()->results;
  const auto named = [&](int attempts) {
    for (auto& result : results) {
      if (result.outcome != Outcome::fail && result.outcome != Outcome::error) continue;
      result.outcome = Outcome::error;
      result.value.reset();
      result.each.clear();
      result.attempts = attempts;
    }
    return localise_pairs(fleet.plan, results).at(0).culprits.size();
  };
  EXPECT_EQ(named(1), 0U);
  EXPECT_EQ(named(2), 1U);
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
  EXPECT_EQ(verdict->localised[0].state, SearchState::common_cause);
  EXPECT_EQ(
      verdict->localised[0].reason,
      "Common cause: 10 of 10 pairs miss the limit, 10 of 10 with no node worse than the others; no node is accused.");
  EXPECT_EQ(verdict->localised[0].undecided.size(), 5U);
  EXPECT_NE(verdict->reason.find("Most pairs are alike in r0: a common cause, no node is accused."), std::string::npos);
}

TEST(pair_matrix, what_was_not_measured_misses_no_limit) {
  const Fleet fleet({kPairs}, 5, [](const Names&) { return true; });
  auto results = fleet.judged()->results;
  const auto broken = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      results[i].outcome = Outcome::error;
      results[i].value.reset();
    }
    return localise_pairs(fleet.plan, results).at(0);
  };
  EXPECT_TRUE(broken(0, 3).reason.starts_with("Common cause: 7 of 7 measured pairs miss the limit; 3 more broke, "))
      << broken(0, 0).reason;
  const auto all = broken(3, 10);
  EXPECT_TRUE(all.reason.starts_with("Common cause: 10 of 10 pairs broke, so nothing was measured, ")) << all.reason;
  EXPECT_TRUE(all.culprits.empty());
}

TEST(pair_matrix, a_node_with_which_every_pair_breaks_is_named_by_that) {
  const Fleet fleet({kPairs}, 6, with("n3"));
  auto results = fleet.judged()->results;
  for (auto& result : results) {
    if (result.outcome != Outcome::fail) continue;
    result.outcome = Outcome::error;
    result.value.reset();
  }
  const auto found = localise_pairs(fleet.plan, results).at(0);
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].words, "node n3: breaks in 5 of 5 pairs; check the node, its port and its cable");
  EXPECT_EQ(found.reason, "0 of 10 measured pairs miss the limit; 5 more broke.");
}

constexpr const char* kAdvisoryPairs =
    R"({"probe": "fabric", "scope": "pair", "severity": "advisory", "limit": {"at_least": 100, "unit": "B/s"}})";

TEST(pair_matrix, an_advisory_figure_accuses_no_node) {
  const auto verdict = Fleet({kAdvisoryPairs}, 6, with("n3")).judged();
  EXPECT_EQ(verdict->localised.at(0).culprits.size(), 1U) << "it is shown, as a warning";
  EXPECT_EQ(verdict->reason.find("At fault"), std::string::npos) << verdict->reason;
  EXPECT_TRUE(all_accused(*verdict).empty());
  const std::string table = verdict_table(*verdict);
  EXPECT_NE(table.find("located by advisory figures, which accuse no node:"), std::string::npos) << table;
  EXPECT_EQ(table.find("located faults:"), std::string::npos) << table;
  EXPECT_NE(table.find("advisory, only warns:"), std::string::npos) << table;
  EXPECT_EQ(table.find("not passed:"), std::string::npos) << table;
}

TEST(pair_matrix, a_node_that_only_an_advisory_figure_accuses_explains_no_pair_of_a_required_one) {
  const Fleet fleet({kPairsAgain, kAdvisoryPairs}, 6, with("n3"));
  auto results = fleet.judged()->results;
  for (auto& result : results) {  // of the required figure only n2 with n3
    if (result.requirement == "r0" && result.subject.id != "n2+n3")
      result.outcome = Outcome::pass, result.value = 110, result.each.assign(3, 110);
  }
  const auto localised = localise_pairs(fleet.plan, results);
  ASSERT_EQ(localised.size(), 2U);
  ASSERT_EQ(localised[0].culprits.size(), 1U);
  EXPECT_EQ(localised[0].culprits[0].fault, Fault::pair);
  EXPECT_EQ(localised[1].culprits.at(0).nodes, Names{"n3"});
}

TEST(pair_matrix, a_rehearsal_names_nobody) {
  Fleet fleet({kPairs}, 6, with("n3"));
  fleet.plan.quick = true;
  const auto verdict = fleet.judged();
  EXPECT_TRUE(verdict->localised.empty());
  EXPECT_EQ(verdict->reason.find("n3"), std::string::npos) << verdict->reason;
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
