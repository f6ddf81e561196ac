// fabric: made-up nodes with known faults, which answer the tests of a search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/localiser.h"
#include "orchestrator/simulate/random.h"

namespace assay::fixture {

/// Nodes, their faults, and how often an outcome is wrong.
struct Fabric {
  std::size_t nodes = 0;
  std::size_t per_leaf = 0;  ///< 0: leaves are not told
  std::set<std::size_t> bad;
  std::set<std::pair<std::size_t, std::size_t>> bad_pairs;  ///< lower node first
  std::set<std::size_t> flapping;                           ///< bad in half of their tests
  double wrong = 0;                                         ///< probability that an outcome is the opposite
  std::uint64_t seed = 1;

  [[nodiscard]] std::vector<judge::Peer> peers() const {
    std::vector<judge::Peer> all;
    for (std::size_t i = 0; i < nodes; ++i)
      all.push_back(
          {.name = fmt::format("n{:03}", i), .leaf = per_leaf == 0 ? "" : fmt::format("l{:02}", i / per_leaf)});
    return all;
  }

  judge::TestOutcome answer(const judge::Test& test, simulate::SeededRandom& dice) const {
    const std::set<std::size_t> in(test.nodes.begin(), test.nodes.end());
    bool short_one = std::ranges::any_of(bad, [&](std::size_t node) { return in.contains(node); });
    short_one = short_one || std::ranges::any_of(bad_pairs, [&](const auto& pair) {
                  return in.contains(pair.first) && in.contains(pair.second);
                });
    for (const std::size_t node : flapping) short_one = short_one || (in.contains(node) && dice.happens(0.5));
    if (dice.happens(wrong)) short_one = !short_one;
    return short_one ? judge::TestOutcome::short_of_limit : judge::TestOutcome::good;
  }

  [[nodiscard]] judge::Finding search(std::size_t budget) const {
    simulate::SeededRandom dice(seed);
    judge::Localiser localiser(peers(), budget);
    for (auto round = localiser.next(); !round.empty(); round = localiser.next()) {
      for (const auto& test : round) localiser.take(test, answer(test, dice));
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
