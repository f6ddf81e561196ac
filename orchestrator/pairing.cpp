// pairing: the circle method, and grouping by name.
#include "orchestrator/pairing.h"

#include <algorithm>

namespace assay {

std::vector<std::vector<Pair>> tournament(std::size_t nodes, std::size_t rounds) {
  std::vector<std::vector<Pair>> all;
  if (nodes < 2) return all;
  const std::size_t seats = nodes + nodes % 2;  // with an odd number one seat is empty, and its partner pauses
  rounds = std::min(rounds, rounds_for_all_pairs(nodes));
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Pair> pairs;
    // Seat 0 stays, the others move on by one each round; who sits opposite is the partner.
    const auto player = [&](std::size_t seat) { return seat == 0 ? 0 : 1 + (seat - 1 + round) % (seats - 1); };
    for (std::size_t seat = 0; seat < seats / 2; ++seat) {
      const auto [low, high] = std::pair(std::min(player(seat), player(seats - 1 - seat)), std::max(player(seat), player(seats - 1 - seat)));
      if (high < nodes) pairs.emplace_back(low, high);
    }
    std::ranges::sort(pairs);
    all.push_back(std::move(pairs));
  }
  return all;
}

std::vector<Group> groups_of(const Site& site, GroupBy by) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < site.nodes.size(); ++i) {
    const std::string& name = by == GroupBy::rack ? site.nodes[i].rack : site.nodes[i].leaf;
    if (name.empty()) continue;
    auto group = std::ranges::find(groups, name, &Group::name);
    if (group == groups.end()) group = groups.insert(groups.end(), {.name = name, .members = {}});
    group->members.push_back(i);
  }
  return groups;
}

}  // namespace assay
