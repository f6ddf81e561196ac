// pairing: the circle method, and grouping by name.
#include "orchestrator/plan/pairing.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "orchestrator/files/digest.h"

namespace assay::plan {

std::vector<std::vector<Pair>> tournament(std::size_t nodes, std::size_t rounds) {
  std::vector<std::vector<Pair>> all;
  if (nodes < 2) return all;
  const std::size_t seats = nodes + nodes % 2;  // with an odd number one seat is empty, and its partner pauses
  rounds = std::min(rounds, rounds_for_all_pairs(nodes));
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Pair> pairs;
    // Seat 0 stays, the others move by one each round; opposite seats are partners.
    const auto player = [&](std::size_t seat) { return seat == 0 ? 0 : 1 + (seat - 1 + round) % (seats - 1); };
    for (std::size_t seat = 0; seat < seats / 2; ++seat) {
      const auto [low, high] =
          std::pair(std::min(player(seat), player(seats - 1 - seat)), std::max(player(seat), player(seats - 1 - seat)));
      if (high < nodes) pairs.emplace_back(low, high);
    }
    std::ranges::sort(pairs);
    all.push_back(std::move(pairs));
  }
  return all;
}

std::vector<std::vector<Pair>> chosen_pairs(const std::vector<Place>& places, PairChoice choice, std::size_t partners) {
  const auto wanted = [&](const Place& a, const Place& b) {
    if (a.leaf.empty() || b.leaf.empty()) return false;
    if (choice == PairChoice::in_leaf) return a.leaf == b.leaf;
    if (choice == PairChoice::across_leaves) return a.leaf != b.leaf;
    if (a.spines.empty() || b.spines.empty()) return false;
    const bool shared = std::ranges::any_of(
        a.spines, [&](const std::string& spine) { return std::ranges::find(b.spines, spine) != b.spines.end(); });
    return shared == (choice == PairChoice::in_spine);
  };
  std::vector<std::size_t> met(places.size());
  std::vector<std::vector<Pair>> rounds;
  for (const auto& round : tournament(places.size(), rounds_for_all_pairs(places.size()))) {
    std::vector<Pair> chosen;
    for (const auto& [low, high] : round) {
      if (!wanted(places[low], places[high]) || (partners > 0 && met[low] >= partners && met[high] >= partners))
        continue;
      ++met[low];
      ++met[high];
      chosen.emplace_back(low, high);
    }
    if (!chosen.empty()) rounds.push_back(std::move(chosen));
  }
  return rounds;
}

std::vector<Group> groups_of(const std::vector<Place>& places, Grouping by) {
  std::vector<Group> groups;
  const auto add = [&](const std::string& name, std::size_t member) {
    if (name.empty()) return;
    auto group = std::ranges::find(groups, name, &Group::name);
    if (group == groups.end()) group = groups.insert(groups.end(), {.name = name});
    group->members.push_back(member);
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (by == Grouping::spine) {
      for (const auto& spine : places[i].spines) add(spine, i);
    } else {
      add(by == Grouping::rack ? places[i].rack : places[i].leaf, i);
    }
  }
  return groups;
}

std::vector<Group> growing_groups(const std::vector<Place>& places, const Growing& growing) {
  const std::size_t nodes = places.size();
  if (nodes < 2) return {};
  std::vector<std::size_t> order(nodes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (growing.drawn) {
    std::ranges::sort(order, {}, [&](std::size_t i) { return files::sha256(growing.seed + "\n" + places[i].node); });
  }
  std::set<std::size_t> sizes = {nodes};
  for (std::size_t size = 2; size < nodes; size *= 2) sizes.insert(size);
  std::ranges::copy_if(growing.sizes, std::inserter(sizes, sizes.end()),
                       [&](std::size_t size) { return size < nodes; });
  std::vector<Group> groups;
  for (const std::size_t size : sizes) {
    groups.push_back({.name = (growing.drawn ? "drawn-" : "first-") + std::to_string(size),
                      .members = {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(size)}});
  }
  return groups;
}

}  // namespace assay::plan
