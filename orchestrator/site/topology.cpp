// topology: LLDP of every node, and the comparison with the site.
#include "orchestrator/site/topology.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "probes/core/lldp.h"
#include "probes/core/text.h"

namespace assay::site {
namespace {

const std::string& name_of(const Port& port, bool by_device) { return by_device ? port.device : port.interface; }

std::set<std::string> names_of(const Node& node, bool by_device) {
  std::set<std::string> names;
  for (const auto& [plane, ports] : node.planes) {
    for (const auto& port : ports) names.insert(name_of(port, by_device));
  }
  names.erase("");
  return names;
}

/// The name of the site's port at the end of the cable: the cable's, or of a nameless adapter the only one there is.
std::string end_of(const Node& node, const Cable& cable, bool by_device) {
  const auto names = names_of(node, by_device);
  return cable.port.empty() && names.size() == 1 ? *names.begin() : cable.port;
}

/// The site's port at the end of the cable, in any plane; nullptr when the site has none.
Port* port_at(Node& node, const Cable& cable, bool by_device) {
  const std::string name = end_of(node, cable, by_device);
  for (auto& [plane, ports] : node.planes) {
    const auto port =
        std::ranges::find_if(ports, [&](const Port& one) { return !name.empty() && name_of(one, by_device) == name; });
    if (port != ports.end()) return &*port;
  }
  return nullptr;
}

/// Whether a site can have it as the name of a switch's port; a description for people is none.
bool is_port_name(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  return !text.empty() && text.size() <= kLongest && has_only(text.substr(0, 1), "") && has_only(text, "._/:-");
}

/// How the port of the site contradicts the cable; empty if it does not.
std::string contradiction(const Node& node, const Port& port, const Cable& cable) {
  const std::string leaf = port_text(node, port, "leaf");
  const std::string rail = port.rail.empty() ? "" : fmt::format(" of rail {}", port.rail);
  const std::string& name = cable.port.empty() ? port.device : cable.port;
  if (!leaf.empty() && leaf != cable.leaf)
    return fmt::format("{}: {}{} is connected to {}{}; in the site it is {} ({})", node.name, name, rail, cable.leaf,
                       cable.switch_port.empty() ? "" : " port " + cable.switch_port, leaf, cable.where);
  if (!port.switch_port.empty() && !cable.switch_port.empty() && port.switch_port != cable.switch_port &&
      port.switch_port != cable.other_name)
    return fmt::format("{}: {}{} is connected to port {} of {}; in the site it is port {} ({})", node.name, name, rail,
                       cable.switch_port, cable.leaf, port.switch_port, cable.where);
  return "";
}

/// Fills in missing fields of the port; adds a finding when one contradicts the cable.
void compare(const Node& node, Port& port, const Cable& cable, std::vector<std::string>& findings) {
  if (std::string finding = contradiction(node, port, cable); !finding.empty()) {
    findings.push_back(std::move(finding));
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
    if (cable.node == node.name && !cable.port.empty() && !cable.leaf.empty() &&
        port_at(node, cable, topology.by_device) == nullptr)
      fresh[cable.port] = &cable;
  }
  std::size_t number = 0;
  for (const auto& [name, cable] : fresh) {
    Port port{.interface = topology.by_device ? "" : name,
              .device = topology.by_device ? name : "",
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
      const std::string& name = name_of(port, topology.by_device);
      const bool expected = !name.empty() && !port.leaf.empty();  // a plane without leaves may belong to another fabric
      const auto shown = std::ranges::find_if(topology.cables, [&](const Cable& cable) {
        return cable.node == node.name && end_of(node, cable, topology.by_device) == name;
      });
      if (!expected || (shown != topology.cables.end() && !shown->leaf.empty())) continue;
      findings.push_back(
          fmt::format("{}: {} of plane {} is on {} in the site, but {}", node.name, name, plane, port.leaf,
                      shown == topology.cables.end() ? "the fabric does not report it" : shown->problem));
    }
  }
}

/// The cable of a port by its neighbours.
Cable cable_of(const std::string& node, const std::vector<const Neighbour*>& neighbours, const std::string& where) {
  Cable cable{.node = node, .port = neighbours.front()->interface, .where = where};
  std::set<std::string> systems;
  for (const Neighbour* one : neighbours) {
    if (one->system.empty() || !systems.insert(one->system).second) continue;
    const bool usual = is_port_name(one->system_port);
    cable.leaf = one->system;
    cable.switch_port = usual ? one->system_port : is_port_name(one->other_name) ? one->other_name : "";
    cable.other_name = usual ? one->other_name : "";
  }
  if (systems.size() == 1) return cable;
  cable.leaf.clear();
  cable.problem = systems.empty() ? "its neighbour reports no name: give the switch a host name"
                                  : fmt::format(
                                        "it has several neighbours ({}): a device between node and switch may "
                                        "repeat LLDP",
                                        printable(fmt::format("{}", fmt::join(systems, ", "))));
  return cable;
}

/// The leaf of the adapter without a name of a node of which the site lists no device: the node's.
void take_leaf(Node& node, const Cable& cable, std::vector<std::string>& findings) {
  if (node.leaf.empty()) node.leaf = cable.leaf;
  if (node.leaf != cable.leaf)
    findings.push_back(fmt::format("{}: is connected to {} port {}; in the site it is {} ({})", node.name, cable.leaf,
                                   cable.switch_port, node.leaf, cable.where));
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
    std::map<std::string, std::vector<const Neighbour*>> by_port;
    for (const auto& one : *neighbours) by_port[one.interface].push_back(&one);
    for (const auto& [port, those] : by_port) {
      topology.cables.push_back(cable_of(node.name, those, file));
      if (const auto& problem = topology.cables.back().problem; !problem.empty())
        topology.notes.push_back(fmt::format("{}: {} is left out: {}", file, printable(port), problem));
    }
  }
  return topology;
}

std::string contradiction(const Site& site, const Cable& cable, bool by_device) {
  const Node* const found = site.node(cable.node);
  if (found == nullptr) return "";
  Node node = *found;
  const Port* const port = port_at(node, cable, by_device);
  return port == nullptr ? "" : contradiction(node, *port, cable);
}

Cabled with_cables(Site site, const Topology& topology, const std::string& plane) {
  Cabled cabled{.site = std::move(site)};
  for (auto& node : cabled.site.nodes) {
    find_missing(node, topology, cabled.findings);
    for (const auto& cable : topology.cables) {
      if (cable.node != node.name || cable.leaf.empty()) continue;
      if (Port* const port = port_at(node, cable, topology.by_device)) {
        compare(node, *port, cable, cabled.findings);
      } else if (cable.port.empty() && names_of(node, topology.by_device).empty()) {
        take_leaf(node, cable, cabled.findings);
      }
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
