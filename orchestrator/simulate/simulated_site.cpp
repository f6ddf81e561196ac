// simulated_site: a site of alike nodes with names, leaves, racks and ports, as large as a simulation asks for.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/simulate/plant_site.h"
#include "orchestrator/simulate/simulate.h"

namespace assay::simulate {
namespace {

/// Port `rail` of node `i` in a plane. Every rail has leaf switches of its own.
site::Port port_on(const FleetShape& shape, std::size_t i, std::size_t plane, std::size_t rail) {
  const std::size_t number = plane * shape.rails + rail;
  constexpr std::size_t kOctet = 256;
  return {
      .interface = fmt::format("eth{}", number),
      .device = fmt::format("rdma{}", number),
      .address =
          fmt::format("10.{}.{}.{}", (number * 2 + i / (kOctet * kOctet)) % kOctet, i / kOctet % kOctet, i % kOctet),
      .rail = std::to_string(rail),
      .leaf = shape.per_leaf == 0 ? "" : fmt::format("{}-l{:04}-rail{}", shape.planes[plane], i / shape.per_leaf, rail),
      .switch_port = shape.per_leaf == 0 ? "" : std::to_string(i % shape.per_leaf)};
}

}  // namespace

FleetShape shape_for(const plan::Profile& profile, FleetShape shape) {
  constexpr std::size_t kPerLeaf = 16;
  bool leaves = false, racks = judges_by_meters(profile);
  for (const auto& requirement : profile.requirements) {
    racks = racks || requirement.by == plan::Grouping::rack;
    leaves = leaves || !requirement.plane.empty() || requirement.pairs || requirement.by == plan::Grouping::leaf;
    if (requirement.plane.empty() || std::ranges::find(shape.planes, requirement.plane) != shape.planes.end()) continue;
    shape.planes.push_back(requirement.plane);
  }
  if (shape.rails == 0 && !shape.planes.empty()) shape.rails = 1;
  constexpr std::size_t kPerRack = 18;  // compute trays of a rack of 72 GPUs
  if (shape.per_rack == 0 && racks) shape.per_rack = std::clamp<std::size_t>(shape.nodes, 1, kPerRack);
  if (shape.per_leaf == 0 && leaves) shape.per_leaf = std::clamp<std::size_t>(shape.nodes / 2, 1, kPerLeaf);
  return shape;
}

site::Site simulated_site(const FleetShape& shape) {
  site::Site site{.name = plan::kSimulated};
  for (std::size_t i = 0; i < shape.nodes; ++i) {
    const std::string name = fmt::format("n{:05}", i);
    site.nodes.push_back({.name = name,
                          .launcher = site::Launcher::ssh,
                          .address = name,
                          .directory = site::kDefaultDirectory,
                          .rack = shape.per_rack == 0 ? "" : fmt::format("r{:04}", i / shape.per_rack),
                          .leaf = shape.per_leaf == 0 ? "" : fmt::format("l{:04}", i / shape.per_leaf),
                          .rendezvous = name});
    for (std::size_t plane = 0; plane < shape.planes.size(); ++plane) {
      for (std::size_t rail = 0; rail < shape.rails; ++rail)
        site.nodes.back().planes[shape.planes[plane]].push_back(port_on(shape, i, plane, rail));
    }
  }
  return site;
}

namespace {

/// Two tenants of half of the nodes each, and one path of every class into each.
void add_crossings(site::Site& site) {
  nlohmann::json tenants = {{"tenant-a", nlohmann::json::array()}, {"tenant-b", nlohmann::json::array()}};
  nlohmann::json paths = nlohmann::json::array();
  std::vector<std::string> names;
  for (const auto& node : site.nodes) {
    tenants[names.size() < site.nodes.size() / 2 ? "tenant-a" : "tenant-b"].push_back(node.name);
    names.push_back(node.name);
  }
  for (const auto& [tenant, nodes] : tenants.items()) {
    for (const auto& [type, word] : words_of(PathClass{})) {
      if (is_handed_over(type) && nodes.size() < 2) continue;  // its target is no control
      paths.push_back({{"name", fmt::format("{}-{}", tenant, word)},
                       {"class", word},
                       {"tenant", tenant},
                       {"address", "10.255.0.1"}});
      if (has_port(type) && default_port(type) == 0) paths.back()["port"] = 7;
      if (type == PathClass::ib_path) paths.back()["resource"] = "0x8001";
      if (is_handed_over(type)) paths.back().update({{"resource", "/shared"}, {"target", nodes.back()}});
      if (type == PathClass::nvlink) paths.back().erase("address");
      if (type == PathClass::nfs) paths.back()["resource"] = "/export";
      if (type == PathClass::s3) paths.back().update({{"resource", "bucket"}, {"credentials", "/etc/assay/s3.json"}});
    }
  }
  auto made = site::crossings_from({{"consent", "simulated: nothing is sent"}, {"tenants", tenants}, {"paths", paths}},
                                   "crossings", names);
  site.crossings = std::move(made.value());
}

}  // namespace

void tell_parts(const plan::Profile& profile, site::Site& site) {
  constexpr int kParts = 8;
  for (const auto& [kind, count] : profile.per_node) {
    if (count != plan::kOfSite || kind == "pair") continue;
    for (auto& node : site.nodes) node.parts[kind] = kParts;
  }
  if (judges_by_meters(profile)) add_meters(profile, site);
  const bool crosses = std::ranges::any_of(profile.requirements,
                                           [](const plan::Requirement& one) { return one.by == plan::Grouping::path; });
  if (crosses && !site.crossings) add_crossings(site);
}

}  // namespace assay::simulate
