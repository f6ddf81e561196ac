// pairing: which nodes work together: rounds of pairs, and groups of what the site says.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/site.h"

namespace assay {

/// Two of `nodes`, by index, the lower one first.
using Pair = std::pair<std::size_t, std::size_t>;

/// The first `rounds` rounds of a tournament of `nodes` players by the circle method (Kirkman 1847): in a round every
/// node is in at most one pair (in exactly one when their number is even), and over all rounds, nodes - 1 of them or
/// nodes when their number is odd, every pair stands once. More rounds than that are not made; fewer than two nodes have none.
std::vector<std::vector<Pair>> tournament(std::size_t nodes, std::size_t rounds);

/// How many rounds show every pair of `nodes` nodes once.
constexpr std::size_t rounds_for_all_pairs(std::size_t nodes) { return nodes < 2 ? 0 : nodes - 1 + nodes % 2; }
static_assert(rounds_for_all_pairs(8) == 7 && rounds_for_all_pairs(7) == 7 && rounds_for_all_pairs(1) == 0);

/// Nodes that work together, by index in the site's order.
struct Group {
  std::string name;  ///< of the rack or leaf
  std::vector<std::size_t> members;
};

/// What groups are made of.
enum class GroupBy { rack, leaf };

/// The groups of `site`, in the order in which the site names them. Nodes without a rack or leaf are in none.
std::vector<Group> groups_of(const Site& site, GroupBy by);

}  // namespace assay
