// placement: nodes alone, pairs by tournament, groups by rack or leaf, the whole.
#include "orchestrator/placement.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "orchestrator/pairing.h"

namespace assay {
namespace {

/// `name` in the alphabet of step ids.
std::string labelled(std::string name) {
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '_');
  return name;
}

std::vector<Spot> single_nodes(const Site& site) {
  std::vector<Spot> spots;
  for (const auto& node : site.nodes) spots.push_back({.subject = {"node", node.name}, .label = node.name, .nodes = {node.name}, .reason = ""});
  return spots;
}

std::vector<Spot> impossible(const Site& site, std::string reason) {
  return {{.subject = {"cluster", site.name}, .label = "", .nodes = {}, .reason = std::move(reason)}};
}

std::expected<std::vector<Spot>, InputError> pairs(const Requirement& requirement, const Site& site) {
  const std::size_t nodes = site.nodes.size();
  if (nodes < 2) return impossible(site, "a pair needs two nodes, the site has one");
  const std::size_t all = rounds_for_all_pairs(nodes);
  const std::size_t rounds = requirement.rounds == 0 ? all : std::min(all, static_cast<std::size_t>(requirement.rounds));
  if (rounds * (nodes / 2) > kMostSpots) {
    return std::unexpected(InputError{"rounds", fmt::format("{} rounds of pairs of {} nodes are {} steps, over {}", rounds, nodes, rounds * (nodes / 2), kMostSpots),
                                      "give `rounds`; each shows every node with another partner"});
  }
  std::vector<Spot> spots;
  for (const auto& round : tournament(nodes, rounds)) {
    for (const auto& [low, high] : round) {
      const auto& a = site.nodes[low].name;
      const auto& b = site.nodes[high].name;
      spots.push_back({.subject = {"pair", a + "+" + b}, .label = a + "--" + b, .nodes = {a, b}, .reason = ""});
    }
  }
  return spots;
}

std::vector<Spot> groups(const Requirement& requirement, const Site& site) {
  const std::string by = requirement.by.empty() ? "rack" : requirement.by;
  std::vector<Spot> spots;
  for (const auto& group : groups_of(site, by == "leaf" ? GroupBy::leaf : GroupBy::rack)) {
    Spot spot{.subject = {"group", group.name}, .label = fmt::format("{}.{}", by, labelled(group.name)), .nodes = {}, .reason = ""};
    for (const auto member : group.members) spot.nodes.push_back(site.nodes[member].name);
    if (spot.nodes.size() < 2) {
      spot.nodes.clear();
      spot.reason = fmt::format("the {} {} has one node, and a group needs two", by, group.name);
    }
    spots.push_back(std::move(spot));
  }
  // A node that no group holds would be accepted without having been in any.
  const auto left_out = std::ranges::find_if(site.nodes, [&](const Node& node) { return (by == "leaf" ? node.leaf : node.rack).empty(); });
  if (!spots.empty() && left_out != site.nodes.end()) {
    spots.push_back({.subject = {"cluster", site.name}, .label = "", .nodes = {}, .reason = fmt::format("the site names no {} of the node {}", by, left_out->name)});
  }
  return spots.empty() ? impossible(site, fmt::format("the site names no {} of any node", by)) : spots;
}

std::vector<Spot> whole(const Site& site) {
  if (site.nodes.size() < 2) return impossible(site, "the site has one node, and a cluster needs two");
  Spot spot{.subject = {"cluster", site.name}, .label = "cluster", .nodes = {}, .reason = ""};
  for (const auto& node : site.nodes) spot.nodes.push_back(node.name);
  return {spot};
}

}  // namespace

std::expected<std::vector<Spot>, InputError> spots_of(const Requirement& requirement, const Description& probe, const Site& site) {
  const bool several = requirement.scope == "group" || requirement.scope == "cluster";
  if (probe.scope == "node") {
    if (!several) return single_nodes(site);
    return std::unexpected(InputError{"scope", fmt::format("{} runs on one node, and the scope is {}", probe.name, requirement.scope),
                                      "judge each node, or use a probe that several nodes run together"});
  }
  if (requirement.scope == "pair") return pairs(requirement, site);
  if (probe.scope == "pair") {
    return std::unexpected(InputError{"scope", fmt::format("{} runs on two nodes, and the scope is {}", probe.name, requirement.scope), "use scope pair"});
  }
  if (requirement.scope == "group") return groups(requirement, site);
  return several ? whole(site) : single_nodes(site);
}

std::vector<Spot> spots_without_steps(const Requirement& requirement, const Site& site, const std::string& reason) {
  if (requirement.scope == "pair" || requirement.scope == "group" || requirement.scope == "cluster") return impossible(site, reason);
  auto spots = single_nodes(site);
  for (auto& spot : spots) {
    spot.nodes.clear();
    spot.reason = reason;
  }
  return spots;
}

}  // namespace assay
