// placement: places requirements on single nodes, on pairs by tournament, on groups and on all nodes; through every
// rail of a plane if one is named.
#include "orchestrator/plan/placement.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "orchestrator/plan/crossing_spots.h"

namespace assay::plan {
namespace {

/// `name` in the alphabet of step ids.
std::string labelled(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '_');
  return name;
}

/// The nodes that one rail of the requirement's plane joins, or all nodes if it names none.
struct Arena {
  std::string site, rail, suffix;  ///< `suffix` distinguishes subjects of several rails
  std::vector<Place> places;

  [[nodiscard]] Spot spot(const char* kind, const std::string& name, const std::string& label,
                          std::vector<std::string> nodes) const {
    return {.subject = {kind, name + suffix},
            .label = label + (suffix.empty() ? "" : ".rail-" + rail),
            .nodes = std::move(nodes),
            .rail = rail};
  }
  [[nodiscard]] Spot missing(const char* kind, const std::string& name, std::string reason) const {
    return {.subject = {kind, name + suffix}, .reason = std::move(reason), .rail = rail};
  }
  [[nodiscard]] Spot impossible(std::string reason) const { return missing("cluster", site, std::move(reason)); }
};

bool takes(const Description& probe, const char* parameter) {
  return std::ranges::find(probe.parameters, parameter, &Description::OwnParameter::name) != probe.parameters.end();
}

/// Why the probe cannot be sent over `port`; empty if it can.
std::string unusable(const site::Node& node, const site::Port* port, const Description& probe,
                     const Requirement& requirement, const std::string& rail) {
  const std::string where =
      fmt::format("node {} in the plane {}{}", node.name, requirement.plane, rail.empty() ? "" : ", rail " + rail);
  if (port == nullptr) return fmt::format("the site names no port of {}", where);
  if (takes(probe, "device") && port->device.empty()) return fmt::format("the site names no RDMA device of {}", where);
  if (takes(probe, "interface") && port->interface.empty())
    return fmt::format("the site names no interface of {}", where);
  if (takes(probe, "interface") && port->address.empty()) return fmt::format("the site names no address of {}", where);
  return "";
}

Place place_of(const site::Site& site, const site::Node& node, const Requirement& requirement,
               const std::string& rail) {
  Place place{.node = node.name, .rack = node.rack, .leaf = site::leaf_of(node, requirement.plane, rail)};
  if (const auto spines = site.spines.find(place.leaf); spines != site.spines.end()) place.spines = spines->second;
  return place;
}

/// One arena for each rail; the nodes that a rail does not join go to `missing`.
std::vector<Arena> arenas(const Requirement& requirement, const Description& probe, const site::Site& site,
                          std::vector<Spot>& missing) {
  const auto rails = requirement.plane.empty() ? std::vector<std::string>{""} : site::rails_of(site, requirement.plane);
  std::vector<Arena> all;
  for (const auto& rail : rails) {
    Arena arena{.site = site.name, .rail = rail, .suffix = rails.size() > 1 ? "@" + rail : ""};
    for (const auto& node : site.nodes) {
      const auto why_not = requirement.plane.empty()
                               ? ""
                               : unusable(node, site::port_of(node, requirement.plane, rail), probe, requirement, rail);
      if (why_not.empty())
        arena.places.push_back(place_of(site, node, requirement, rail));
      else
        missing.push_back(arena.missing("node", node.name, why_not));
    }
    all.push_back(std::move(arena));
  }
  return all;
}

std::vector<Spot> single_nodes(const site::Site& site) {
  std::vector<Spot> spots;
  for (const auto& node : site.nodes)
    spots.push_back({.subject = {"node", node.name}, .label = node.name, .nodes = {node.name}});
  return spots;
}

/// The same, through every port that a node has in the requirement's plane.
std::vector<Spot> single_nodes_in_plane(const Requirement& requirement, const Description& probe,
                                        const site::Site& site) {
  auto spots = single_nodes(site);
  for (std::size_t i = 0; i < spots.size(); ++i) {
    const site::Node& node = site.nodes[i];
    const auto ports = node.planes.find(requirement.plane);
    if (ports == node.planes.end())
      spots[i].reason = fmt::format("the site names no port of node {} in the plane {}", node.name, requirement.plane);
    else if (takes(probe, "interface") &&
             std::ranges::any_of(ports->second, &std::string::empty, &site::Port::interface)) {
      spots[i].reason =
          fmt::format("the site names no interface of a port of node {} in the plane {}", node.name, requirement.plane);
    } else if (takes(probe, "device") && std::ranges::any_of(ports->second, &std::string::empty, &site::Port::device)) {
      spots[i].reason = fmt::format("the site names no RDMA device of a port of node {} in the plane {}", node.name,
                                    requirement.plane);
    }
    if (!spots[i].reason.empty()) spots[i].nodes.clear();
  }
  return spots;
}

/// Why no pair of the requirement's choice holds the place.
std::string unpaired(const Place& place, PairChoice choice) {
  const bool of_spines = choice == PairChoice::in_spine || choice == PairChoice::across_spines;
  if (place.leaf.empty()) return fmt::format("the site names no leaf of the node {}", place.node);
  if (of_spines && place.spines.empty())
    return fmt::format("the site names no spines of the leaf {} of the node {}", place.leaf, place.node);
  if (choice == PairChoice::in_leaf)
    return fmt::format("no other node hangs on the leaf {} of the node {}", place.leaf, place.node);
  if (choice == PairChoice::across_leaves)
    return fmt::format("no node hangs on another leaf than {}, that of the node {}", place.leaf, place.node);
  return fmt::format(
      "the node {} has no partner {}", place.node,
      choice == PairChoice::in_spine ? "on another leaf or its own below its spines" : "below other spines");
}

std::expected<std::vector<Spot>, InputError> pairs(const Requirement& requirement, const Arena& arena) {
  const std::size_t nodes = arena.places.size();
  if (nodes < 2)
    return std::vector{arena.impossible(nodes == 1 && arena.rail.empty() ? "a pair needs two nodes, the site has one"
                                                                         : "a pair needs two nodes")};
  const PairChoice choice = requirement.pairs.value_or(PairChoice::all);
  const bool all_of_them = choice == PairChoice::all;
  const std::size_t all = rounds_for_all_pairs(nodes);
  const std::size_t rounds =
      requirement.rounds == 0 ? all : std::min(all, static_cast<std::size_t>(requirement.rounds));
  if (rounds * (nodes / 2) > kMostSpots) {
    return std::unexpected(InputError{"rounds",
                                      fmt::format("{} rounds of pairs of {} nodes are {} steps, over {}", rounds, nodes,
                                                  rounds * (nodes / 2), kMostSpots),
                                      "give `rounds`; each shows every node with another partner"});
  }
  std::vector<Spot> spots;
  std::vector<bool> paired(nodes);
  for (const auto& round : all_of_them
                               ? tournament(nodes, rounds)
                               : chosen_pairs(arena.places, choice, static_cast<std::size_t>(requirement.rounds))) {
    for (const auto& [low, high] : round) {
      const auto& a = arena.places[low].node;
      const auto& b = arena.places[high].node;
      spots.push_back(arena.spot("pair", a + "+" + b, a + "--" + b, {a, b}));
      paired[low] = paired[high] = true;
    }
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    if (paired[i]) continue;
    const std::string reason =
        all_of_them
            ? fmt::format("the node {} pauses in the only round of an odd number of nodes; give 2 rounds or more",
                          arena.places[i].node)
            : unpaired(arena.places[i], choice);
    spots.push_back(arena.missing("node", arena.places[i].node, reason));
  }
  return spots;
}

std::vector<Spot> groups(const Requirement& requirement, const Arena& arena, const Growing& rule) {
  const Grouping by = requirement.by.value_or(Grouping::rack);
  const bool growing = by == Grouping::growing;
  const auto name_of = [&](const Place& place) {
    return by == Grouping::rack   ? place.rack
           : by == Grouping::leaf ? place.leaf
           : place.spines.empty() ? ""
                                  : place.spines.front();
  };
  if (growing && arena.places.size() < (is_of_smallest(requirement.limit.reference) ? 3U : 2U)) {
    return {arena.impossible(is_of_smallest(requirement.limit.reference)
                                 ? "growing groups that are held against the smallest need three nodes"
                                 : "a group needs two nodes")};
  }
  std::vector<Spot> spots;
  for (const auto& group : growing ? growing_groups(arena.places, rule) : groups_of(arena.places, by)) {
    Spot spot = arena.spot("group", group.name, fmt::format("{}.{}", by, labelled(group.name)), {});
    for (const auto member : group.members) spot.nodes.push_back(arena.places[member].node);
    spot.smallest = growing && spots.empty();
    if (spot.nodes.size() < 2) {
      spot.nodes.clear();
      spot.reason = fmt::format("the {} {} has one node, and a group needs two", by, group.name);
    }
    spots.push_back(std::move(spot));
  }
  const std::size_t demanded = requirement.knee ? static_cast<std::size_t>(requirement.knee->at_least.value_or(0)) : 0;
  if (demanded > arena.places.size())
    spots.push_back(arena.impossible(
        fmt::format("the figure must be kept up to {} nodes, and {} work together", demanded, arena.places.size())));
  // A node that no group holds would be accepted without having been in any.
  const auto left_out = std::ranges::find_if(arena.places, [&](const Place& place) { return name_of(place).empty(); });
  if (!growing && !spots.empty() && left_out != arena.places.end())
    spots.push_back(arena.impossible(fmt::format("the site names no {} of the node {}", by, left_out->node)));
  return spots.empty() ? std::vector{arena.impossible(fmt::format("the site names no {} of any node", by))} : spots;
}

std::vector<Spot> whole(const Arena& arena) {
  if (arena.places.size() < 2) return {arena.impossible("the site has one node, and a cluster needs two")};
  Spot spot = arena.spot("cluster", arena.site, "cluster", {});
  for (const auto& place : arena.places) spot.nodes.push_back(place.node);
  return {spot};
}

std::optional<InputError> check_fit(const Requirement& requirement, const Description& probe) {
  const bool several = requirement.scope == JudgedScope::group || requirement.scope == JudgedScope::cluster;
  if (!requirement.plane.empty() && !takes(probe, "interface") && !takes(probe, "device")) {
    return InputError{
        "plane",
        fmt::format("{} has no parameter `interface` or `device`, so it cannot be given a port of the plane",
                    probe.name),
        "leave the plane out, or use another probe"};
  }
  for (const char* name : {"interface", "device"}) {
    if (requirement.plane.empty() || !requirement.parameters.contains(name)) continue;
    return InputError{fmt::format("parameters.{}", name), "is set by the plane for each node",
                      "give the plane or the parameter"};
  }
  if ((requirement.by == Grouping::path) != (probe.name == kCrossingProbe))
    return InputError{"by",
                      fmt::format("is of paths only with the probe {}, which goes with nothing else", kCrossingProbe),
                      "give scope group and \"by\": \"path\" with it, and another grouping with other probes"};
  if (probe.scope == "node" && several) {
    return InputError{"scope", fmt::format("{} runs on one node, and the scope is {}", probe.name, requirement.scope),
                      "judge each node, or use a probe that several nodes run together"};
  }
  if (probe.scope == "pair" && requirement.scope != JudgedScope::pair) {
    return InputError{"scope", fmt::format("{} runs on two nodes, and the scope is {}", probe.name, requirement.scope),
                      "use scope pair"};
  }
  return std::nullopt;
}

}  // namespace

std::size_t least_spots(const Requirement& requirement, const Description& probe, const site::Site& site) {
  const std::size_t nodes = site.nodes.size();
  if (probe.scope == "node" || !is_together(requirement.scope)) return nodes;
  // Which nodes a plane joins, and which pairs a choice names, is known only when they are looked at.
  if (requirement.scope != JudgedScope::pair || !requirement.plane.empty() ||
      requirement.pairs.value_or(PairChoice::all) != PairChoice::all)
    return 1;
  const std::size_t all = rounds_for_all_pairs(nodes);
  return (requirement.rounds == 0 ? all : std::min(all, static_cast<std::size_t>(requirement.rounds))) * (nodes / 2);
}

std::expected<std::vector<Spot>, InputError> spots_of(const Requirement& requirement, const Description& probe,
                                                      const site::Site& site, const Growing& growing) {
  if (auto problem = check_fit(requirement, probe)) return std::unexpected(std::move(*problem));
  if (probe.scope == "node" || !is_together(requirement.scope))
    return requirement.plane.empty() ? single_nodes(site) : single_nodes_in_plane(requirement, probe, site);
  if (requirement.by == Grouping::path) return crossing_spots(requirement, site);
  std::vector<Spot> missing, spots;
  for (const auto& arena : arenas(requirement, probe, site, missing)) {
    auto some = requirement.scope == JudgedScope::pair ? pairs(requirement, arena)
                : requirement.scope == JudgedScope::group
                    ? std::expected<std::vector<Spot>, InputError>(groups(requirement, arena, growing))
                    : whole(arena);
    if (!some) return some;
    std::ranges::move(*some, std::back_inserter(spots));
  }
  std::ranges::move(missing, std::back_inserter(spots));
  if (spots.empty())
    return std::vector<Spot>{{.subject = {"cluster", site.name},
                              .reason = fmt::format("the site names no port in the plane {}", requirement.plane)}};
  if (spots.size() > kMostSpots)
    return std::unexpected(
        InputError{"plane", fmt::format("{} steps, over {}", spots.size(), kMostSpots), "give `rounds`"});
  return spots;
}

std::vector<Spot> spots_without_steps(const Requirement& requirement, const site::Site& site,
                                      const std::string& reason) {
  if (is_together(requirement.scope)) {
    return {{.subject = {"cluster", site.name}, .reason = reason}};
  }
  auto spots = single_nodes(site);
  for (auto& spot : spots) {
    spot.nodes.clear();
    spot.reason = reason;
  }
  return spots;
}

void keep_built(const Program& program, const site::Site& site, std::vector<Spot>& spots) {
  std::map<std::string_view, std::string_view> unbuilt;  // machine by node
  for (const auto& node : site.nodes) {
    if (!node.machine.empty() && !program.builds.contains(node.machine)) unbuilt.emplace(node.name, node.machine);
  }
  if (unbuilt.empty()) return;
  for (auto& spot : spots) {
    for (const auto& name : spot.nodes) {
      const auto found = unbuilt.find(name);
      if (found == unbuilt.end()) continue;
      spot.reason = fmt::format("the probe {} is not part of this build for {}", program.name, found->second);
      spot.nodes.clear();
      break;
    }
  }
}

std::size_t keep_drawn(const Requirement& requirement, const std::vector<DrawnCell>& drawn, std::vector<Spot>& spots) {
  std::size_t found = 0;
  for (auto& spot : spots) {
    if (spot.nodes.empty()) continue;
    if (std::ranges::find(drawn, DrawnCell{requirement.id, spot.subject}) != drawn.end()) {
      ++found;
    } else if (!(spot.smallest && is_of_smallest(requirement.limit.reference))) {
      spot.nodes.clear();
      spot.reason = "not drawn";
    }
  }
  return found;
}

}  // namespace assay::plan
