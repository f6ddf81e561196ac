// pairing: which nodes work together: rounds of pairs, and groups by the site.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/plan/profile.h"

namespace assay::plan {

/// Two of `nodes`, by index, the lower one first.
using Pair = std::pair<std::size_t, std::size_t>;

/// The first `rounds` rounds of a tournament of `nodes` players by the circle method (Kirkman 1847): in a round every
/// node is in at most one pair (in exactly one when their number is even), and over all rounds, nodes - 1 of them or
/// nodes when their number is odd, every pair occurs once. More rounds than that are not made; fewer than two nodes
/// have none.
std::vector<std::vector<Pair>> tournament(std::size_t nodes, std::size_t rounds);

/// How many rounds show every pair of `nodes` nodes once.
constexpr std::size_t rounds_for_all_pairs(std::size_t nodes) { return nodes < 2 ? 0 : nodes - 1 + nodes % 2; }
static_assert(rounds_for_all_pairs(8) == 7 && rounds_for_all_pairs(7) == 7 && rounds_for_all_pairs(1) == 0);

/// Place of a node, as needed for pairs and groups.
struct Place {
  std::string node, rack, leaf;
  std::vector<std::string> spines;  ///< of its leaf, in the site's order; empty: unknown
};

/// Those pairs of `places` that `choice` (in_leaf, across_leaves, in_spine: leaves that share a spine; across_spines:
/// leaves that share none) names, in the order and rounds of the tournament, every node in one pair a round at most.
/// With `partners` above 0 a pair is left out once both its nodes have that many. Pairs of nodes whose leaf (or spines,
/// if they matter) the site does not give are in none.
std::vector<std::vector<Pair>> chosen_pairs(const std::vector<Place>& places, PairChoice choice, std::size_t partners);

/// Nodes that work together, by index in the order given.
struct Group {
  std::string name;  ///< of the rack, leaf or spine; "first-4" of growing groups, "drawn-4" of drawn ones
  std::vector<std::size_t> members;
};

/// The groups of `places` by rack, leaf or spine, in the order in which those are first named. A node that has none is
/// in no group.
std::vector<Group> groups_of(const std::vector<Place>& places, Grouping by);

/// Rule of the growing groups of one probe.
struct Growing {
  bool drawn = false;              ///< in an order that `seed` draws, so that no place comes first; else in the site's
  std::string seed;                ///< any text
  std::vector<std::size_t> sizes;  ///< besides those by the rule; each has two nodes at least
};

/// The first 2, 4, 8, … of `places`, those of `growing.sizes` that they are enough for, and then all of them, by rising
/// size; none for fewer than two. Each holds the one before it.
std::vector<Group> growing_groups(const std::vector<Place>& places, const Growing& growing);

}  // namespace assay::plan
