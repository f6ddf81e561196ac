// topology: LLDP of every node, and the comparison with the site.
#include "orchestrator/site/topology.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "probes/core/lldp.h"
#include "probes/core/text.h"

namespace assay::site {
namespace {

bool is_at(const Port& port, const Cable& cable, bool by_device) {
  return (by_device ? port.device : port.interface) == cable.port;
}

/// The site's port at the end of the cable, in any plane; nullptr when the site has none.
Port* port_at(Node& node, const Cable& cable, bool by_device) {
  for (auto& [plane, ports] : node.planes) {
    const auto port = std::ranges::find_if(ports, [&](const Port& one) { return is_at(one, cable, by_device); });
    if (port != ports.end()) return &*port;
  }
  return nullptr;
}

/// Fills in missing fields of the port; adds a finding when one contradicts the cable.
void compare(const Node& node, Port& port, const Cable& cable, std::vector<std::string>& findings) {
  const std::string leaf = port_text(node, port, "leaf");
  const std::string rail = port.rail.empty() ? "" : fmt::format(" of rail {}", port.rail);
  if (!leaf.empty() && leaf != cable.leaf) {
    findings.push_back(fmt::format("{}: {}{} is connected to {}{}; in the site it is {} ({})", node.name, cable.port,
                                   rail, cable.leaf, cable.switch_port.empty() ? "" : " port " + cable.switch_port,
                                   leaf, cable.where));
    return;
  }
  if (!port.switch_port.empty() && !cable.switch_port.empty() && port.switch_port != cable.switch_port) {
    findings.push_back(fmt::format("{}: {}{} is connected to port {} of {}; in the site it is port {} ({})", node.name,
                                   cable.port, rail, cable.switch_port, cable.leaf, port.switch_port, cable.where));
    return;
  }
  port.leaf = cable.leaf;
  if (port.switch_port.empty()) port.switch_port = cable.switch_port;
}

/// The ports of `node` that the site does not have, as ports of the plane; rails are numbered by name of port when
/// there are several.
void add_ports(Node& node, const Topology& topology, const std::string& plane) {
  std::map<std::string, const Cable*> fresh;
  for (const auto& cable : topology.cables) {
    if (cable.node == node.name && port_at(node, cable, topology.by_device) == nullptr) fresh[cable.port] = &cable;
  }
  std::size_t number = 0;
  for (const auto& [name, cable] : fresh) {
    Port port{.interface = topology.by_device ? "" : name,
              .device = topology.by_device ? name : "",
              .address = "",
              .rail = fresh.size() > 1 ? std::to_string(number) : "",
              .leaf = cable->leaf,
              .switch_port = cable->switch_port};
    ++number;
    node.planes[plane].push_back(std::move(port));
  }
}

/// Adds a finding for each port of the site on this kind of network that the fabric does not report.
void find_missing(const Node& node, const Topology& topology, std::vector<std::string>& findings) {
  for (const auto& [plane, ports] : node.planes) {
    for (const auto& port : ports) {
      const std::string& name = topology.by_device ? port.device : port.interface;
      const bool expected = !name.empty() && !port.leaf.empty();  // a plane without leaves may belong to another fabric
      const bool shown = std::ranges::any_of(
          topology.cables, [&](const Cable& cable) { return cable.node == node.name && cable.port == name; });
      if (expected && !shown)
        findings.push_back(fmt::format("{}: {} of plane {} is on {} in the site, but the fabric does not report it",
                                       node.name, name, plane, port.leaf));
    }
  }
}

}  // namespace

std::expected<Topology, InputError> topology_from_lldp(const std::map<std::string, std::string>& texts,
                                                       const std::string& where, const Site& site) {
  Topology topology;
  for (const auto& [name, text] : texts) {
    if (site.node(name) == nullptr)
      return std::unexpected(InputError{fmt::format("{}/{}.json", where, printable(name)),
                                        "does not belong to a node of the site", "name each file after its node"});
  }
  for (const auto& node : site.nodes) {
    const std::string file = fmt::format("{}/{}.json", where, node.name);
    const auto text = texts.find(node.name);
    if (text == texts.end())
      return std::unexpected(InputError{file, "is missing", "run `lldpctl -f json` on every node of the site"});
    const auto neighbours = read_lldp(text->second, file);
    if (!neighbours) return std::unexpected(neighbours.error());
    std::set<std::string> seen;
    for (const auto& one : *neighbours) {
      if (one.system.empty())
        return std::unexpected(InputError{file,
                                          fmt::format("the neighbour of {} reports no name", printable(one.interface)),
                                          "give the switch a host name"});
      if (!seen.insert(one.interface).second)
        return std::unexpected(InputError{file, fmt::format("{} has two neighbours", printable(one.interface)),
                                          "a device between node and switch may repeat LLDP"});
      topology.cables.push_back({.node = node.name,
                                 .port = one.interface,
                                 .leaf = one.system,
                                 .switch_port = one.system_port,
                                 .where = file});
    }
  }
  return topology;
}

Cabled with_cables(Site site, const Topology& topology, const std::string& plane) {
  Cabled cabled{.site = std::move(site), .findings = {}};
  for (auto& node : cabled.site.nodes) {
    find_missing(node, topology, cabled.findings);
    for (const auto& cable : topology.cables) {
      if (cable.node != node.name) continue;
      if (Port* const port = port_at(node, cable, topology.by_device)) compare(node, *port, cable, cabled.findings);
    }
    if (!plane.empty()) add_ports(node, topology, plane);
  }
  for (const auto& [leaf, spines] : topology.spines) {
    const auto known = cabled.site.spines.find(leaf);
    if (known == cabled.site.spines.end()) {
      cabled.site.spines[leaf] = spines;
    } else if (std::set(known->second.begin(), known->second.end()) != std::set(spines.begin(), spines.end())) {
      cabled.findings.push_back(fmt::format("{}: is connected to other spines than in the site", leaf));
    }
  }
  return cabled;
}

}  // namespace assay::site
