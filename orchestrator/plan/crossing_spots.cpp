// crossing_spots: paths, tenants and nodes become placements.
#include "orchestrator/plan/crossing_spots.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace assay::plan {
namespace {

std::string class_of(const Requirement& requirement) {
  const auto found = requirement.parameters.find("class");
  const auto* const word = found == requirement.parameters.end() ? nullptr : std::get_if<std::string>(&found->second);
  return word == nullptr ? "" : *word;
}

const site::CrossingPath* path_named(const site::Site& site, const std::string& name) {
  const auto found = std::ranges::find(site.crossings->paths, name, &site::CrossingPath::name);
  return found == site.crossings->paths.end() ? nullptr : &*found;
}

bool holds(const site::Node& node, const std::string& address) {
  if (node.address == address || node.rendezvous == address) return true;
  return std::ranges::any_of(node.planes, [&](const auto& plane) {
    return std::ranges::find(plane.second, address, &site::Port::address) != plane.second.end();
  });
}

/// The nodes of the tenant that can be a control of `path`: not its target, and none that holds its address, if there
/// are others.
std::vector<std::string> controls_of(const site::Site& site, const site::CrossingPath& path) {
  auto own = site.crossings->tenants.at(path.tenant);
  std::erase(own, path.target);
  std::vector<std::string> others;
  std::ranges::copy_if(own, std::back_inserter(others),
                       [&](const std::string& name) { return !holds(*site.node(name), path.address); });
  return others.empty() ? own : others;
}

/// The exports of `tenant` at the server of `path`, an export too, with a blank between; empty if the site declares
/// none.
std::string own_exports(const site::Site& site, const site::CrossingPath& path, const std::string& tenant) {
  std::string row;
  for (const auto& one : site.crossings->paths) {
    if (one.type == PathClass::nfs && one.tenant == tenant && one.address == path.address && one.port == path.port)
      row += (row.empty() ? "" : " ") + one.resource;
  }
  return row;
}

Spot without_nodes(const site::CrossingPath& path, std::string reason) {
  return {.subject = {"group", path.name}, .reason = std::move(reason), .path = path.name};
}

}  // namespace

std::vector<const site::CrossingPath*> paths_of(const site::Site& site, const Requirement& requirement) {
  std::vector<const site::CrossingPath*> all;
  if (!site.crossings) return all;
  for (const auto& path : site.crossings->paths)
    if (word_of(path.type) == class_of(requirement)) all.push_back(&path);
  return all;
}

std::vector<Spot> crossing_spots(const Requirement& requirement, const site::Site& site) {
  std::vector<Spot> spots;
  std::size_t turn = 0;
  for (const auto* path : paths_of(site, requirement)) {
    const auto controls = controls_of(site, *path);
    const std::size_t before = spots.size();
    for (const auto& [tenant, nodes] : site.crossings->tenants) {
      if (tenant == path->tenant || controls.empty()) continue;
      for (const auto& node : nodes) {
        spots.push_back({.subject = {"group", node + ">" + path->name},
                         .label = node + "--" + path->name,
                         .nodes = {node, controls[turn++ % controls.size()]},
                         .path = path->name});
        if (!path->target.empty()) spots.back().nodes.push_back(path->target);
      }
    }
    if (controls.empty())
      spots.push_back(without_nodes(
          *path,
          fmt::format("the tenant {} of the path {} has no node for the positive control", path->tenant, path->name)));
    else if (spots.size() == before)
      spots.push_back(
          without_nodes(*path, fmt::format("no other tenant has a node that could try the path {}", path->name)));
  }
  return spots;
}

void add_path(const site::Site& site, const std::string& name, const std::string& node, Values& parameters) {
  const site::CrossingPath* const path = site.crossings ? path_named(site, name) : nullptr;
  if (path == nullptr) return;
  parameters["path"] = path->name;
  parameters["address"] = path->address;
  parameters["port"] = std::int64_t{path->port};
  parameters["resource"] = path->resource;
  parameters["watched"] = std::string(path->target.empty() ? "off" : "on");
  if (parameters.contains("folder")) {  // from revision 3 of the probe on
    parameters["folder"] = path->folder;
    parameters["own_export"] = path->folder.empty() ? "" : own_exports(site, *path, tenant_of(site, node));
  }
  parameters["interface"] = path->interface;
  parameters["region"] = path->region;
  parameters["tls"] = std::string(path->tls ? "on" : "off");
  parameters["credentials"] = path->credentials;
}

std::string tenant_of(const site::Site& site, const std::string& node) {
  if (!site.crossings) return "";
  for (const auto& [tenant, nodes] : site.crossings->tenants)
    if (std::ranges::find(nodes, node) != nodes.end()) return tenant;
  return "";
}

std::optional<InputError> check_crossings(const site::Site& site, const Profile& profile) {
  if (site.crossings) return std::nullopt;
  return InputError{fmt::format("site {}: crossings", site.name),
                    fmt::format("is missing, and profile {} tries paths between tenants", profile.name),
                    "needs the consent of all tenants: \"crossings\": {\"consent\": \"NAME, DATE, TENANTS\", "
                    "\"tenants\": {…}, \"paths\": […]} (docs/FORMATS.md)"};
}

std::string no_path_words(const Requirement& requirement) {
  return fmt::format("the site declares no path of class {}", class_of(requirement));
}

std::string crossing_words(const Plan& plan) {
  std::map<std::pair<std::string, std::string>, std::size_t> nodes;  // by path and tenant
  std::int64_t tries = 0;
  for (const auto& step : plan.steps) {
    if (step.path.empty()) continue;
    ++nodes[{step.path, tenant_of(plan.site, step.nodes.front())}];
    const auto asked = step.parameters.find("tries");
    if (asked != step.parameters.end()) tries = std::get<std::int64_t>(asked->second);
  }
  std::string text;
  for (const auto& [place, count] : nodes) {
    const site::CrossingPath& path = *path_named(plan.site, place.first);
    text += fmt::format(
        "crossing: {} nodes of {} try {} of {}: {} to {}{}, at most {} times, 1 s apart; a node of {} "
        "does the same{}\n",
        count, place.second, path.name, path.tenant, path.folder.empty() ? sent_on(path.type) : kSentByHandle,
        path.address.empty() ? path.tenant : path.address, path.port == 0 ? "" : fmt::format(" port {}", path.port),
        tries, path.tenant,
        path.target.empty()              ? ""
        : path.type == PathClass::nvlink ? fmt::format(", and {} offers it", path.target)
                                         : fmt::format(", and {} sees the arrivals", path.target));
  }
  return text;
}

}  // namespace assay::plan
