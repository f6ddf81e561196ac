// localise over seeds: how many tests a search takes, how many faults it finds, and that it accuses no other node.
#include <gtest/gtest.h>

#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/plan/search_budget.h"
#include "tests/unit/judge/fabric.h"

namespace assay::judge {
namespace {

using fixture::accused_nodes;
using fixture::accused_pairs;
using fixture::Fabric;
using simulate::SeededRandom;

/// What 200 seeds of a fabric give, counted.
struct Tally {
  std::size_t seeds = 0, tests = 0, most_tests = 0, rounds = 0;
  std::size_t bad = 0, found = 0, accused = 0, wrongly_accused = 0;
};

Tally tally(std::size_t bad_nodes, std::size_t bad_pairs, double wrong, std::size_t per_leaf) {
  Tally all;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed * 7919 + 17);
    Fabric fabric{.nodes = 232, .per_leaf = per_leaf, .wrong = wrong, .seed = seed};
    while (fabric.bad.size() < bad_nodes) fabric.bad.insert(random.below(fabric.nodes));
    while (fabric.bad_pairs.size() < bad_pairs) {
      const auto a = random.below(fabric.nodes);
      const auto b = random.below(fabric.nodes);
      if (a < b && !fabric.bad.contains(a) && !fabric.bad.contains(b)) fabric.bad_pairs.emplace(a, b);
    }
    const auto found = fabric.search(plan::budget_for(fabric.nodes));
    ++all.seeds;
    all.tests += found.tests.size();
    all.most_tests = std::max(all.most_tests, found.tests.size());
    all.rounds += found.rounds;
    all.bad += bad_nodes + bad_pairs;
    for (const auto node : accused_nodes(found)) ++(fabric.bad.contains(node) ? all.found : all.wrongly_accused);
    for (const auto& pair : accused_pairs(found)) ++(fabric.bad_pairs.contains(pair) ? all.found : all.wrongly_accused);
    all.accused += accused_nodes(found).size() + accused_pairs(found).size();
  }
  return all;
}

/// Prints the counts, so that a reader of the log sees by how much a bound is kept.
void print(const char* what, const Tally& all) {
  fmt::print("{}: {:.1f} tests on average, {} at most, {:.1f} rounds, found {} of {}, {} wrongly accused\n", what,
             static_cast<double>(all.tests) / static_cast<double>(all.seeds), all.most_tests,
             static_cast<double>(all.rounds) / static_cast<double>(all.seeds), all.found, all.bad, all.wrongly_accused);
}

TEST(localise_over_seeds, five_bad_of_232_take_55_tests_on_average_at_most_and_all_are_found) {
  for (const std::size_t per_leaf : {0U, 16U}) {
    const auto all = tally(5, 0, 0, per_leaf);
    print("five bad", all);
    EXPECT_LE(all.tests, 55 * all.seeds);
    EXPECT_EQ(all.found, all.bad);
    EXPECT_EQ(all.wrongly_accused, 0U);
  }
}

TEST(localise_over_seeds, five_bad_of_232_take_56_tests_on_average_at_most_when_one_outcome_of_200_is_wrong) {
  const auto all = tally(5, 0, 0.005, 16);
  print("five bad, one of 200 outcomes wrong", all);
  EXPECT_LE(all.tests, 56 * all.seeds);
  EXPECT_GE(100 * all.found, 99 * all.bad);
  EXPECT_LT(100 * all.wrongly_accused, all.accused);
}

TEST(localise_over_seeds, pair_faults_are_found_in_98_of_100_cases_at_least) {
  const auto alone = tally(0, 1, 0, 16);
  print("one pair", alone);
  EXPECT_EQ(alone.found, alone.bad);
  EXPECT_EQ(alone.wrongly_accused, 0U);
  const auto noisy = tally(0, 1, 0.005, 16);
  print("one pair, one of 200 outcomes wrong", noisy);
  EXPECT_GE(100 * noisy.found, 98 * noisy.bad);
  EXPECT_LE(100 * noisy.wrongly_accused, 2 * noisy.accused);
}

TEST(localise_over_seeds, pairs_are_found_beside_bad_nodes) {
  const auto all = tally(5, 2, 0, 16);
  print("five bad and two pairs", all);
  EXPECT_GE(100 * all.found, 99 * all.bad);
  EXPECT_LT(100 * all.wrongly_accused, all.accused);
}

TEST(localise_over_seeds, false_accusations_stay_under_one_of_100_when_one_outcome_of_50_is_wrong) {
  const auto all = tally(5, 1, 0.02, 16);
  print("five bad and a pair, one of 50 outcomes wrong", all);
  EXPECT_LT(100 * all.wrongly_accused, all.accused);
}

/// How often a node is accused that should not be, how often the search says that all are alike, and how many of the
/// faults it finds, of `fabric` with `bad` nodes at random.
struct Outcomes {
  std::size_t searches = 0, accusing = 0, common = 0, faults = 0, found = 0, tests = 0, most_tests = 0;
};

Outcomes outcomes(const Fabric& like, std::size_t bad_nodes, std::size_t flapping, int attempts) {
  Outcomes all;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed * 104'729 + 5);
    Fabric fabric = like;
    fabric.seed = seed;
    while (fabric.bad.size() < bad_nodes) fabric.bad.insert(random.below(fabric.nodes));
    while (fabric.flapping.size() < flapping) fabric.flapping.insert(random.below(fabric.nodes));
    const auto before = fabric.attempts(attempts, random);
    if (std::ranges::all_of(before, &Reading::meets)) continue;  // nothing fell short
    const auto found = fabric.search(plan::budget_for(fabric.nodes), before);
    std::size_t innocent = accused_pairs(found).size();
    for (const auto node : accused_nodes(found))
      ++(fabric.bad.contains(node) || fabric.flapping.contains(node) ? all.found : innocent);
    ++all.searches;
    all.accusing += innocent > 0 ? 1 : 0;
    all.common += found.alike ? 1 : 0;
    all.faults += fabric.bad.size() + fabric.flapping.size();
    all.tests += found.tests.size();
    all.most_tests = std::max(all.most_tests, found.tests.size());
  }
  return all;
}

TEST(localise_over_seeds, where_all_nodes_are_alike_at_or_under_the_limit_no_node_is_accused) {
  for (const double margin : {0.0, -0.005, -0.01}) {
    const auto all = outcomes({.nodes = 232, .per_leaf = 16, .margin = margin, .deviation = 0.005}, 0, 0, 3);
    EXPECT_GT(all.searches, 30U) << margin;
    EXPECT_EQ(all.accusing, 0U) << margin;
  }
  const auto under = outcomes({.nodes = 232, .per_leaf = 16, .margin = -0.01, .deviation = 0.005}, 0, 0, 3);
  EXPECT_GE(100 * under.common, 90 * under.searches);
}

TEST(localise_over_seeds, alike_nodes_whose_tests_differ_by_a_percent_are_not_accused_either) {
  for (const double margin : {0.005, 0.01})
    EXPECT_EQ(outcomes({.nodes = 232, .per_leaf = 16, .margin = margin, .deviation = 0.01}, 0, 0, 3).accusing, 0U);
}

TEST(localise_over_seeds, a_figure_that_depends_on_the_number_of_nodes_accuses_and_hides_no_node) {
  const Fabric falling{.nodes = 232, .per_leaf = 16, .margin = -0.005, .deviation = 0.005, .per_halving = -0.01};
  EXPECT_EQ(outcomes(falling, 0, 0, 3).accusing, 0U);
  for (const auto& [per_halving, left] : {std::pair(0.01, 0.93), std::pair(0.02, 0.9), std::pair(-0.01, 0.9)}) {
    const auto all =
        outcomes({.nodes = 232, .per_leaf = 16, .left = left, .deviation = 0.005, .per_halving = per_halving}, 3, 0, 3);
    EXPECT_GE(100 * all.found, 99 * all.faults) << per_halving;
    EXPECT_EQ(all.accusing, 0U) << per_halving;
  }
}

TEST(localise_over_seeds, three_nodes_take_60_tests_and_five_take_90_on_average_at_most) {
  const Fabric fabric{.nodes = 232, .per_leaf = 16, .deviation = 0.005};
  const auto three = outcomes(fabric, 3, 0, 3);
  EXPECT_EQ(three.found, three.faults);
  EXPECT_LE(three.tests, 60 * three.searches);
  const auto five = outcomes(fabric, 5, 0, 3);
  EXPECT_EQ(five.found, five.faults);
  EXPECT_LE(five.tests, 90 * five.searches);
}

TEST(localise_over_seeds, the_budget_grows_with_what_is_found_so_that_twelve_nodes_and_five_pairs_are_found) {
  const auto nodes = outcomes({.nodes = 232, .per_leaf = 16, .deviation = 0.005}, 12, 0, 3);
  EXPECT_GE(100 * nodes.found, 99 * nodes.faults);
  const auto pairs = tally(0, 5, 0, 16);
  print("five pairs", pairs);
  EXPECT_GE(100 * pairs.found, 98 * pairs.bad);
  EXPECT_EQ(pairs.wrongly_accused, 0U);
}

TEST(localise_over_seeds, a_node_that_is_bad_in_half_of_its_tests_is_found_in_most_searches) {
  const auto all = outcomes({.nodes = 232, .per_leaf = 16, .deviation = 0.005}, 0, 1, 5);
  EXPECT_GE(all.searches, 90U);  // of 100: five attempts show it with a probability of 97 %
  EXPECT_GE(100 * all.found, 80 * all.searches);
  EXPECT_LE(100 * all.accusing, 10 * all.searches);  // pairs of which it is one end
}

TEST(localise_over_seeds, a_node_that_is_bad_in_three_of_ten_tests_is_not_cleared_by_two_good_ones) {
  const auto all = outcomes({.nodes = 64, .often = 0.3, .deviation = 0.005}, 0, 1, 5);
  EXPECT_GE(all.searches, 80U);  // of 100: five attempts show it with a probability of 83 %
  EXPECT_GE(100 * all.found, 65 * all.searches);
}

}  // namespace
}  // namespace assay::judge
