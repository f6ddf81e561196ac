// fabric: made-up nodes with known faults, which answer the tests of a search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/simulate/random.h"

namespace assay::fixture {

/// Nodes, their faults, how far healthy ones lie above the limit, and how tests differ that should not.
struct Fabric {
  std::size_t nodes = 0;
  std::size_t per_leaf = 0;  ///< 0: leaves are unknown
  std::set<std::size_t> bad;
  std::set<std::pair<std::size_t, std::size_t>> bad_pairs;  ///< lower node first
  std::set<std::size_t> flapping;                           ///< bad in some of their tests
  double often = 0.5;       ///< probability that a flapping node, or with `pairs_flap` a bad pair, is bad in a test
  bool pairs_flap = false;  ///< whether bad pairs are bad in some of their tests only
  double wrong = 0;         ///< probability that an outcome is the opposite
  double margin = 0.04;     ///< of healthy nodes beyond the limit, as a share of it
  double left = 0.7;        ///< share of performance that a fault leaves
  double deviation = 0;     ///< relative standard deviation of a test
  double per_halving = 0;   ///< relative change of the figure when the number of nodes is halved
  double second = 0;        ///< share of the limit of a second figure, which no fault touches; 0: there is none
  double second_deviation = 0;
  std::uint64_t seed = 1;

  [[nodiscard]] std::vector<judge::Peer> peers() const {
    std::vector<judge::Peer> all;
    for (std::size_t i = 0; i < nodes; ++i)
      all.push_back(
          {.name = fmt::format("n{:03}", i), .leaf = per_leaf == 0 ? "" : fmt::format("l{:02}", i / per_leaf)});
    return all;
  }

  judge::Reading answer(const std::vector<std::size_t>& members, simulate::SeededRandom& dice) const {
    const std::set<std::size_t> in(members.begin(), members.end());
    bool short_one = std::ranges::any_of(bad, [&](std::size_t node) { return in.contains(node); });
    for (const auto& pair : bad_pairs)
      short_one =
          short_one || (in.contains(pair.first) && in.contains(pair.second) && (!pairs_flap || dice.happens(often)));
    for (const std::size_t node : flapping) short_one = short_one || (in.contains(node) && dice.happens(often));
    if (dice.happens(wrong)) short_one = !short_one;
    const double halvings = std::log2(static_cast<double>(nodes) / static_cast<double>(in.size()));
    judge::Reading reading{.shares = {(1 + margin) * (short_one ? left : 1) * (1 + per_halving * halvings) *
                                      (1 + deviation * dice.normal())}};
    if (second > 0) reading.shares.push_back(std::max(0.0, second * (1 + second_deviation * dice.normal())));
    return reading;
  }

  /// The same of all nodes, `count` times.
  [[nodiscard]] std::vector<judge::Reading> attempts(int count, simulate::SeededRandom& dice) const {
    std::vector<std::size_t> all(nodes);
    std::iota(all.begin(), all.end(), 0U);
    std::vector<judge::Reading> readings;
    for (int i = 0; i < count; ++i) readings.push_back(answer(all, dice));
    return readings;
  }

  [[nodiscard]] judge::Finding search(plan::SearchBudget budget,
                                      const std::vector<judge::Reading>& attempts = {}) const {
    simulate::SeededRandom dice(seed);
    judge::Localiser localiser(peers(), budget, attempts);
    for (auto round = localiser.next(); !round.empty(); round = localiser.next()) {
      for (const auto& test : round) localiser.take(test, answer(test.nodes, dice));
    }
    return localiser.finding();
  }
};

/// Accusations of nodes (those of a leaf one by one) and of pairs.
inline std::set<std::size_t> accused_nodes(const judge::Finding& finding) {
  std::set<std::size_t> all;
  for (const auto& suspect : finding.suspects) {
    if (suspect.fault != judge::Fault::pair) all.insert(suspect.nodes.begin(), suspect.nodes.end());
  }
  return all;
}
inline std::set<std::pair<std::size_t, std::size_t>> accused_pairs(const judge::Finding& finding) {
  std::set<std::pair<std::size_t, std::size_t>> all;
  for (const auto& suspect : finding.suspects) {
    if (suspect.fault == judge::Fault::pair) all.emplace(suspect.nodes[0], suspect.nodes[1]);
  }
  return all;
}

}  // namespace assay::fixture
