// Pairs of figures with directions: a port that is slow one way, and nodes that other figures accuse.
#include "orchestrator/judge/locate/pair_matrix.h"

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "orchestrator/judge/locate/pairs.h"
#include "orchestrator/simulate/random.h"
#include "tests/unit/judge/search_fleet.h"

namespace assay::judge {
namespace {

using fixture::Fleet;
using fixture::kPairs;
using fixture::Names;

const Names kNodes = {"n1", "n2", "n3", "n4", "n5", "n6"};

/// Whether data from one node to another is slow.
using IsSlow = std::function<bool(std::size_t from, std::size_t to)>;

/// All pairs of six nodes, each once, in both directions.
PairMatrix matrix_of(const IsSlow& slow) {
  PairMatrix matrix;
  const auto add = [&](std::size_t a, std::size_t b, PairDirection direction, bool bad) {
    constexpr std::size_t kAttempts = 3;
    matrix.add({.a = a,
                .b = b,
                .direction = direction,
                .bad = bad,
                .attempts = kAttempts,
                .missed = bad ? kAttempts : 0,
                .step = "s"});
  };
  for (std::size_t a = 0; a < kNodes.size(); ++a) {
    for (std::size_t b = a + 1; b < kNodes.size(); ++b) {
      add(a, b, PairDirection::forward, slow(a, b));
      add(a, b, PairDirection::backward, slow(b, a));
    }
  }
  return matrix;
}

Localised found_in(PairMatrix matrix, const std::set<std::size_t>& known_bad = {}) {
  matrix.accuse();
  return matrix.found(kNodes, known_bad);
}

TEST(pair_matrix, a_port_that_is_slow_one_way_is_the_node_s_and_of_none_of_its_partners) {
  // n3 is the second of two pairs and the first of three: no figure alone shows it in more than half of its pairs.
  const auto found = found_in(matrix_of([](std::size_t, std::size_t to) { return to == 2; }));
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].fault, Fault::node);
  EXPECT_EQ(found.culprits[0].nodes, Names{"n3"});
  EXPECT_EQ(found.culprits[0].words,
            "node n3: misses the limit in 5 of 5 pairs as the receiver; check the node, its port and its cable");
  EXPECT_FALSE(found.culprits[0].unsteady);
  EXPECT_EQ(found.reason, "5 of 30 pairs miss the limit, each direction counted.");
}

TEST(pair_matrix, a_port_that_is_slow_both_ways_is_one_culprit) {
  const auto found = found_in(matrix_of([](std::size_t from, std::size_t to) { return from == 4 || to == 4; }));
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].nodes, Names{"n5"});
  EXPECT_EQ(found.culprits[0].words,
            "node n5: misses the limit in 5 of 5 pairs as the sender and in 5 of 5 pairs as the receiver; check the "
            "node, its port and its cable");
  EXPECT_EQ(found.culprits[0].tests, Names{"s"});
}

TEST(pair_matrix, a_sender_and_a_receiver_that_are_slow_are_two_nodes) {
  const auto found = found_in(matrix_of([](std::size_t from, std::size_t to) { return from == 0 || to == 5; }));
  std::set<std::string> named;
  for (const auto& culprit : found.culprits) named.insert(culprit.nodes.begin(), culprit.nodes.end());
  EXPECT_EQ(named, (std::set<std::string>{"n1", "n6"}));
}

TEST(pair_matrix, a_path_that_is_slow_one_way_is_a_pair_with_its_direction) {
  const auto one_way = found_in(matrix_of([](std::size_t from, std::size_t to) { return from == 3 && to == 1; }));
  ASSERT_EQ(one_way.culprits.size(), 1U);
  EXPECT_EQ(one_way.culprits[0].words,
            "pair n2 and n4, from n4 to n2: each meets the limit with other nodes; check the path between them");
  const auto both =
      found_in(matrix_of([](std::size_t from, std::size_t to) { return from + to == 4 && from * to == 3; }));
  ASSERT_EQ(both.culprits.size(), 1U);
  EXPECT_EQ(both.culprits[0].words,
            "pair n2 and n4: each meets the limit with other nodes; check the path between them");
}

TEST(pair_matrix, what_is_short_with_a_node_that_other_figures_accuse_accuses_no_partner_of_it) {
  const auto slow = [](std::size_t from, std::size_t to) { return from == 3 && to == 1; };
  const auto found = found_in(matrix_of(slow), {3});
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].fault, Fault::node);
  EXPECT_EQ(found.culprits[0].nodes, Names{"n4"});
  EXPECT_EQ(found_in(matrix_of(slow), {5}).culprits.at(0).fault, Fault::pair);
  const auto both_ways = [](std::size_t from, std::size_t to) { return from + to == 4 && from * to == 3; };
  EXPECT_EQ(found_in(matrix_of(both_ways), {3}).culprits.at(0).tests, Names{"s"});  // once, not for each direction
}

TEST(pair_matrix, all_that_are_slow_alike_accuse_none) {
  const auto found = found_in(matrix_of([](std::size_t, std::size_t) { return true; }));
  EXPECT_TRUE(found.culprits.empty());
  EXPECT_EQ(found.state, SearchState::common_cause);
  EXPECT_EQ(found.undecided, kNodes);
}

/// How often, over seeds, eight nodes with five pairs each accuse what is at fault, and anything else, where a cause
/// that all nodes share makes pairs miss the limit besides.
struct BusyFleet {
  enum class Broken { nothing, node, pair } fault = Broken::nothing;
  double often = 0;       ///< of a pair's attempts, or of its stages, that the cause hits
  bool of_stages = true;  ///< it hits all attempts of a stage, or each by itself
  int attempts = 1, more_attempts = 0;
  int found = 0, others = 0, pairs = 0;
};

/// The attempts of one pair, the second stage where the first one misses.
SeenPair measured(const BusyFleet& fleet, simulate::SeededRandom& random, std::size_t a, std::size_t b, bool broken) {
  SeenPair pair{.a = a, .b = b, .share = 0, .attempts = 0, .step = "s"};
  double sum = 0;
  for (const int planned : {fleet.attempts, fleet.more_attempts}) {
    const bool hit = random.happens(fleet.often);
    for (int i = 0; i < planned; ++i) {
      const bool slow = fleet.of_stages ? hit : random.happens(fleet.often);
      double share = 1.25 * (slow ? 0.3 + 0.45 * random.share() : 1) * (1 + 0.02 * random.normal());
      if (broken) share /= 16;
      sum += share;
      ++pair.attempts;
      pair.missed += share < 1 ? 1 : 0;
    }
    pair.share = sum / static_cast<double>(pair.attempts);
    if (pair.share >= 1) break;
  }
  pair.bad = pair.share < 1;
  return pair;
}

void run(BusyFleet& fleet, std::uint64_t seed) {
  constexpr std::size_t kFleet = 8, kSlow = 5, kRounds = 5;
  simulate::SeededRandom random(seed * 7919 + 17);
  PairMatrix matrix;
  bool is_first = true;
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t a = 0; a < kFleet - 1; ++a) {  // the circle method
      const std::size_t b = (round + kFleet - 1 - a) % (kFleet - 1);
      if (b < a) continue;
      const std::size_t partner = a == b ? kFleet - 1 : b;
      const bool of_node = fleet.fault == BusyFleet::Broken::node && (a == kSlow || partner == kSlow);
      const bool of_pair = fleet.fault == BusyFleet::Broken::pair && std::exchange(is_first, false);
      matrix.add(measured(fleet, random, a, partner, of_node || of_pair));
    }
  }
  bool found = false, other = false, pair = false;
  matrix.accuse();
  const Names names = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};
  for (const auto& culprit : matrix.found(names, {}).culprits) {
    const bool is_node = culprit.fault == Fault::node;
    const bool right = is_node ? fleet.fault == BusyFleet::Broken::node && culprit.nodes.front() == "n5"
                               : fleet.fault == BusyFleet::Broken::pair && culprit.nodes == Names{"n0", "n7"};
    found = found || right;
    other = other || (is_node && !right);
    pair = pair || (!is_node && !right);
  }
  fleet.found += found ? 1 : 0;
  fleet.others += other ? 1 : 0;
  fleet.pairs += pair ? 1 : 0;
}

constexpr int kSeeds = 1000;

TEST(pair_matrix, over_seeds_a_common_cause_accuses_no_node_and_hides_no_slow_one) {
  for (const auto fault : {BusyFleet::Broken::nothing, BusyFleet::Broken::node}) {
    for (const double often : {0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 0.9}) {
      BusyFleet fleet{.fault = fault, .often = often};
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) run(fleet, seed);
      const bool with_fault = fault == BusyFleet::Broken::node;
      fmt::print("{} node at a sixteenth, {:g} of the pairs missing: found {}, another node {}, a pair {} of {}\n",
                 with_fault ? "one" : "no", often, fleet.found, fleet.others, fleet.pairs, kSeeds);
      EXPECT_LE(fleet.others, kSeeds / 50);
      EXPECT_EQ(fleet.pairs, 0) << "measured once";
      if (with_fault && often <= 0.5) {
        EXPECT_GE(fleet.found, kSeeds * 19 / 20);
      }
    }
  }
}

TEST(pair_matrix, over_seeds_a_common_cause_names_no_path_and_hides_no_broken_one) {
  struct Case {
    int attempts, more_attempts;
    bool of_stages;
    double often;
    int most_false, least_found;
  };
  // A cause that lasts for all attempts of both stages of a pair and hits no other pair of its nodes is one of a path.
  for (const auto& [attempts, more, of_stages, often, most_false, least_found] :
       {Case{3, 0, false, 0.05, 20, 950}, Case{3, 0, false, 0.1, 50, 600}, Case{3, 4, false, 0.05, 5, 980},
        Case{3, 4, false, 0.1, 5, 980}, Case{3, 4, false, 0.2, 5, 950}, Case{3, 4, true, 0.05, 65, 950},
        Case{3, 4, true, 0.1, 230, 900}}) {
    for (const auto fault : {BusyFleet::Broken::nothing, BusyFleet::Broken::pair}) {
      BusyFleet fleet{
          .fault = fault, .often = often, .of_stages = of_stages, .attempts = attempts, .more_attempts = more};
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) run(fleet, seed);
      fmt::print(
          "{} path at a sixteenth, {} + {} attempts, a cause in {:g} of the {}: found {}, another path {} of {}\n",
          fault == BusyFleet::Broken::pair ? "one" : "no", attempts, more, often, of_stages ? "stages" : "attempts",
          fleet.found, fleet.pairs, kSeeds);
      EXPECT_LE(fleet.pairs, most_false);
      if (fault == BusyFleet::Broken::pair) {
        EXPECT_GE(fleet.found, least_found);
      }
    }
  }
}

TEST(localised_pairs, the_two_directions_of_a_figure_are_looked_at_together) {
  Fleet fleet({kPairs, kPairs}, 6, fixture::with("none"));
  auto results = fleet.judged()->results;
  auto& metrics = fleet.plan.probes.at("fabric").description.metrics;
  const Names names = {"forward_bandwidth", "backward_bandwidth"};
  const std::array directions = {PairDirection::forward, PairDirection::backward};
  std::map<std::string, PairDirection> direction_of;
  for (std::size_t i = 0; i < names.size(); ++i) {
    metrics.push_back(metrics.front());
    metrics.back().name = names[i];
    metrics.back().direction = directions.at(i);
    fleet.plan.profile.requirements[i].metric = names[i];
    direction_of[fleet.plan.profile.requirements[i].id] = directions.at(i);
  }
  for (auto& result : results) {
    const auto step = std::ranges::find(fleet.plan.steps, result.step, &plan::Step::id);
    const bool forward = direction_of.at(result.requirement) == PairDirection::forward;
    if (step->nodes[forward ? 1 : 0] != "n3") continue;  // what n3 receives
    result.outcome = Outcome::fail;
    result.value = 50;
    result.limit_low = 100;
  }
  const auto localised = localise_pairs(fleet.plan, results);
  ASSERT_EQ(localised.size(), 1U);
  EXPECT_EQ(localised[0].requirements.size(), 2U);
  ASSERT_EQ(localised[0].culprits.size(), 1U);
  EXPECT_EQ(localised[0].culprits[0].nodes, Names{"n3"});
}

}  // namespace
}  // namespace assay::judge
