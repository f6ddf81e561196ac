// localise: who is accused, by how many tests, and who is not.
#include "orchestrator/judge/locate/localiser.h"

#include <functional>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

#include "orchestrator/plan/search_budget.h"
#include "tests/unit/judge/fabric.h"

namespace assay::judge {
namespace {

using fixture::accused_nodes;
using fixture::accused_pairs;
using fixture::Fabric;
using simulate::SeededRandom;

using Nodes = std::set<std::size_t>;
using Pairs = std::set<std::pair<std::size_t, std::size_t>>;
using Members = std::vector<std::size_t>;

constexpr plan::SearchBudget kPlenty{.base = 10'000, .per_culprit = 0, .most = 10'000};

TEST(localise, a_single_bad_node_is_accused_with_the_tests_that_show_it) {
  const Fabric fabric{.nodes = 16, .bad = {11}};
  const auto found = fabric.search(kPlenty);
  ASSERT_EQ(found.suspects.size(), 1U);
  EXPECT_EQ(found.suspects[0].fault, Fault::node);
  EXPECT_EQ(found.suspects[0].nodes, std::vector<std::size_t>{11});
  EXPECT_FALSE(found.suspects[0].unsteady);
  EXPECT_TRUE(found.complete);
  ASSERT_EQ(found.suspects[0].tests.size(), 2U);
  for (const auto number : found.suspects[0].tests) {
    EXPECT_EQ(found.tests[number - 1].outcome, TestOutcome::short_of_limit);
    EXPECT_TRUE(std::ranges::count(found.tests[number - 1].test.nodes, 11U));
  }
}

TEST(localise, five_bad_nodes_are_accused_and_no_other) {
  const Fabric fabric{.nodes = 232, .bad = {3, 4, 77, 150, 231}};
  const auto found = fabric.search(kPlenty);
  EXPECT_EQ(accused_nodes(found), (Nodes{3, 4, 77, 150, 231}));
  EXPECT_TRUE(accused_pairs(found).empty());
  EXPECT_TRUE(found.complete);
}

TEST(localise, without_a_fault_no_node_is_accused) {
  const auto found = Fabric{.nodes = 100}.search(kPlenty);
  EXPECT_TRUE(found.suspects.empty());
  EXPECT_TRUE(found.undecided.empty());
  EXPECT_TRUE(found.complete);
}

TEST(localise, a_fault_that_only_one_pair_shows_is_found_within_a_chunk_and_across_chunks) {
  for (const auto& pair : {std::pair<std::size_t, std::size_t>(0, 1), {5, 20}, {0, 231}, {100, 140}}) {
    const auto found = Fabric{.nodes = 232, .bad_pairs = {pair}}.search(kPlenty);
    EXPECT_EQ(accused_pairs(found), Pairs{pair});
    EXPECT_TRUE(accused_nodes(found).empty());
    EXPECT_TRUE(found.complete);
  }
}

TEST(localise, bad_nodes_and_a_bad_pair_are_told_apart) {
  const Fabric fabric{.nodes = 232, .bad = {3, 90}, .bad_pairs = {{20, 200}}};
  const auto found = fabric.search(kPlenty);
  EXPECT_EQ(accused_nodes(found), (Nodes{3, 90}));
  EXPECT_EQ(accused_pairs(found), (Pairs{{20, 200}}));
}

TEST(localise, two_faulty_pairs_of_one_node_are_both_found) {
  const Fabric fabric{.nodes = 64, .bad_pairs = {{10, 20}, {10, 50}}};
  const auto found = fabric.search(kPlenty);
  EXPECT_EQ(accused_pairs(found), (Pairs{{10, 20}, {10, 50}}));
  EXPECT_TRUE(accused_nodes(found).empty());
}

TEST(localise, a_node_that_is_short_with_many_but_not_with_all_is_accused_as_a_node) {
  Fabric fabric{.nodes = 64};
  for (const std::size_t other : {20U, 30U, 50U, 60U}) fabric.bad_pairs.emplace(10, other);
  const auto found = fabric.search(kPlenty);
  EXPECT_EQ(accused_nodes(found), Nodes{10});
  EXPECT_TRUE(accused_pairs(found).empty());
  EXPECT_TRUE(found.suspects[0].unsteady);
}

TEST(localise, a_leaf_with_all_of_its_nodes_bad_is_accused_as_a_leaf) {
  Fabric fabric{.nodes = 128, .per_leaf = 16};
  for (std::size_t i = 32; i < 48; ++i) fabric.bad.insert(i);
  const auto found = fabric.search(kPlenty);
  ASSERT_EQ(found.suspects.size(), 1U);
  EXPECT_EQ(found.suspects[0].fault, Fault::leaf);
  EXPECT_EQ(found.suspects[0].leaf, "l02");
  EXPECT_EQ(accused_nodes(found), fabric.bad);
  EXPECT_LE(found.tests.size(), 81U);  // measured: 81
}

TEST(localise, a_leaf_that_is_cut_off_from_the_others_is_accused_though_its_nodes_are_good_together) {
  for (const std::size_t cut : {0U, 2U, 7U}) {
    Fabric fabric{.nodes = 128, .per_leaf = 16};
    for (std::size_t a = 0; a < 128; ++a) {
      for (std::size_t b = a + 1; b < 128; ++b) {
        if ((a / 16 == cut) != (b / 16 == cut)) fabric.bad_pairs.emplace(a, b);
      }
    }
    const auto found = fabric.search(kPlenty);
    ASSERT_EQ(found.suspects.size(), 1U) << cut;
    EXPECT_EQ(found.suspects[0].fault, Fault::leaf);
    EXPECT_EQ(found.suspects[0].leaf, fmt::format("l{:02}", cut));
  }
}

TEST(localise, a_flapping_node_is_accused_as_unsteady_or_left_undecided_and_no_other_is) {
  std::size_t accused = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto found = Fabric{.nodes = 64, .flapping = {9}, .seed = seed}.search(kPlenty);
    for (const std::size_t node : accused_nodes(found)) EXPECT_EQ(node, 9U);
    accused += accused_nodes(found).size();
  }
  EXPECT_GE(accused, 50U);
}

TEST(localise, what_the_budget_leaves_open_is_undecided_and_not_accused) {
  const Fabric fabric{.nodes = 232, .bad = {3, 90}};
  const auto found = fabric.search({.base = 12, .per_culprit = 0, .most = 12});
  EXPECT_EQ(found.tests.size(), 12U);
  EXPECT_TRUE(found.budget_ended);
  EXPECT_FALSE(found.complete);
  EXPECT_FALSE(found.undecided.empty());
  for (const std::size_t node : accused_nodes(found)) EXPECT_TRUE(fabric.bad.contains(node));
}

TEST(localise, two_nodes_that_are_short_together_cannot_be_told_apart) {
  const auto found = Fabric{.nodes = 2, .bad = {1}}.search(kPlenty);
  EXPECT_TRUE(found.suspects.empty());
  EXPECT_EQ(found.undecided, (std::vector<std::size_t>{0, 1}));
  EXPECT_FALSE(found.complete);
}

TEST(localise, one_of_three_nodes_is_told_by_the_two_others) {
  for (const std::size_t bad : {0U, 1U, 2U})
    EXPECT_EQ(accused_nodes(Fabric{.nodes = 3, .bad = {bad}}.search(kPlenty)), Nodes{bad});
}

TEST(localise, when_all_are_bad_no_node_is_known_to_be_good_and_none_is_accused) {
  const auto found = Fabric{.nodes = 6, .bad = {0, 1, 2, 3, 4, 5}}.search(kPlenty);
  EXPECT_TRUE(found.suspects.empty());
  EXPECT_EQ(found.undecided.size(), 6U);
  EXPECT_TRUE(found.alike);
}

/// What a search finds whose tests end as `broken` says of their nodes and of how often those were tested; the others
/// read as `shares` says.
Finding broken_search(std::size_t nodes, const std::function<bool(const Members&, int)>& broken,
                      const std::function<double(const Members&)>& shares) {
  Localiser localiser(Fabric{.nodes = nodes}.peers(), kPlenty, {{.shares = {shares({})}}});
  std::map<Members, int> times;
  for (auto round = localiser.next(); !round.empty(); round = localiser.next()) {
    for (const auto& test : round) {
      const bool breaks = broken(test.nodes, ++times[test.nodes]);
      localiser.take(test, breaks ? Reading{.broken = true, .shares = {}} : Reading{.shares = {shares(test.nodes)}});
    }
  }
  return localiser.finding();
}

bool is_among(std::size_t node, const Members& nodes) { return std::ranges::count(nodes, node) > 0; }

TEST(localise, a_node_with_which_every_test_breaks_is_accused) {
  const auto found = broken_search(
      16, [](const Members& nodes, int) { return is_among(5, nodes); }, [](const Members&) { return 1.04; });
  EXPECT_EQ(accused_nodes(found), Nodes{5});
}

TEST(localise, tests_that_break_once_accuse_none_but_the_slow_node) {
  for (const std::size_t nodes : {6U, 8U, 16U, 64U}) {
    const auto found = broken_search(
        nodes, [](const Members& both, int times) { return times == 1 && (both.front() + both.back()) % 3 != 0; },
        [](const Members& all) { return all.empty() || is_among(3, all) ? 0.44 : 1.1; });
    EXPECT_EQ(accused_nodes(found), Nodes{3}) << nodes;
    EXPECT_TRUE(found.complete) << nodes;
  }
}

// All others never ran, and the only reading is of the slow node: nothing says that it is good.
TEST(localise, the_only_reading_among_broken_ones_is_no_control_when_it_misses_its_limit) {
  const auto found = broken_search(
      6, [](const Members& nodes, int) { return !is_among(3, nodes); }, [](const Members&) { return 0.44; });
  for (const auto node : accused_nodes(found)) EXPECT_EQ(node, 3U);
}

// No two tests of pairs that are known to be good are alike here: nothing is there to compare a suspect with.
TEST(localise, without_controls_that_are_alike_no_node_is_accused) {
  const auto found = Fabric{.nodes = 12, .deviation = 0.03, .seed = 6}.search(plan::budget_for(12));
  EXPECT_TRUE(found.suspects.empty());
  EXPECT_EQ(found.undecided.size(), 2U);
}

TEST(localise, tests_of_one_round_have_no_node_in_common_and_two_nodes_at_least) {
  const Fabric fabric{.nodes = 232, .bad = {3, 4, 77, 150, 231}, .bad_pairs = {{20, 200}}};
  Localiser localiser(fabric.peers(), kPlenty);
  SeededRandom random(1);
  for (auto round = localiser.next(); !round.empty(); round = localiser.next()) {
    std::set<std::size_t> busy;
    for (const auto& test : round) {
      EXPECT_GE(test.nodes.size(), 2U);
      for (const auto node : test.nodes) EXPECT_TRUE(busy.insert(node).second);
      localiser.take(test, fabric.answer(test.nodes, random));
    }
  }
}

TEST(localise, the_order_of_outcomes_within_a_round_changes_nothing) {
  const Fabric fabric{.nodes = 100, .bad = {3, 44}};
  Localiser localiser(fabric.peers(), kPlenty);
  SeededRandom random(1);
  for (auto round = localiser.next(); !round.empty(); round = localiser.next()) {
    for (auto test = round.rbegin(); test != round.rend(); ++test)
      localiser.take(*test, fabric.answer(test->nodes, random));
  }
  const auto forward = fabric.search(kPlenty);
  const auto backward = localiser.finding();
  EXPECT_EQ(accused_nodes(forward), accused_nodes(backward));
  EXPECT_EQ(forward.tests.size(), backward.tests.size());
}

TEST(localise, an_outcome_that_was_not_asked_for_is_refused) {
  Localiser localiser(Fabric{.nodes = 16}.peers(), kPlenty);
  (void)localiser.next();  // the round itself is not looked at
  EXPECT_THROW(localiser.take({.number = 99, .nodes = {1, 2}, .purpose = ""}, Reading{.shares = {1}}),
               std::logic_error);
}

TEST(localise, words_say_where_to_look) {
  const auto peers = Fabric{.nodes = 4, .per_leaf = 2}.peers();
  EXPECT_EQ(suspect_words({.fault = Fault::node, .nodes = {1}, .leaf = "", .tests = {}}, peers),
            "node n001: misses the limit with every peer; check the node, its port and its cable to leaf l00");
  EXPECT_EQ(suspect_words({.fault = Fault::pair, .nodes = {1, 2}, .leaf = "", .unsteady = true, .tests = {}}, peers),
            "pair n001 and n002, unsteady: each meets the limit with other nodes; check the path between them");
  EXPECT_EQ(suspect_words({.fault = Fault::leaf, .nodes = {2, 3}, .leaf = "l01", .tests = {}}, peers),
            "leaf l01: all of its 2 nodes; check the switch and its uplinks");
}

}  // namespace
}  // namespace assay::judge
