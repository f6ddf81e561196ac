// site_cables: the comparison is that of a site with the LLDP of its nodes (site/topology.h), seen from the switch.
#include "orchestrator/judge/metering/site_cables.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/plan/metered.h"
#include "orchestrator/site/topology.h"

namespace assay::judge {
namespace {

/// What the newest watch that says it reports of a port.
struct Reported {
  std::string system, port, other_name;
};

std::map<Subject, Reported> reported_in(const std::map<int, Record>& watches) {
  std::map<Subject, Reported> all;
  for (const auto& [number, record] : watches) {
    for (const auto& one : record.conditions) {
      const auto* text = std::get_if<std::string>(&one.value);
      if (text == nullptr || one.subject.kind != "switch_port") continue;
      if (one.name == "neighbour") all[one.subject] = {.system = *text};
      if (one.name == "neighbour_port") all[one.subject].port = *text;
      if (one.name == "neighbour_port_name") all[one.subject].other_name = *text;
    }
  }
  return all;
}

/// The node of a system's name: as the site writes it, or the first part of a name with a domain.
const site::Node* node_of(const site::Site& site, const std::string& system) {
  if (const auto* node = site.node(system)) return node;
  return site.node(system.substr(0, system.find('.')));
}

bool has_port(const site::Node& node, const std::string& name) {
  return !name.empty() && std::ranges::any_of(node.planes, [&](const auto& plane) {
    return std::ranges::any_of(plane.second, [&](const site::Port& port) { return port.interface == name; });
  });
}

std::expected<JoinedFigure, std::string> compared(const site::Site& site, const plan::CabledPort& port,
                                                  const Reported& seen) {
  if (seen.system.find(',') != std::string::npos)
    return std::unexpected(fmt::format("The switch reports several neighbours there: {}.", seen.system));
  const auto* node = node_of(site, seen.system);
  if (node == nullptr)
    return std::unexpected(fmt::format("The neighbour there, {}, is no node of the site.", seen.system));
  const std::string name = has_port(*node, seen.port) ? seen.port : seen.other_name;
  const bool known = has_port(*node, name);
  if (!known && node->name == port.node)
    return std::unexpected("The neighbour there is the right node, and names none of its ports in the site.");
  const std::string finding = known ? site::contradiction(site,
                                                          {.node = node->name,
                                                           .port = name,
                                                           .leaf = port.leaf,
                                                           .switch_port = port.switch_port,
                                                           .where = "LLDP of the switch"},
                                                          false)
                                    : "";
  if (finding.empty() && node->name == port.node &&
      (!known || name == port.end->interface || port.end->interface.empty()))
    return JoinedFigure{.value = 0};
  return JoinedFigure{
      .value = 1,
      .words = fmt::format("The switch reports {}{}{} there, and in the site it is {}{}", node->name, known ? " " : "",
                           known ? name : "", port.end_words(), finding.empty() ? "" : "; " + finding)};
}

}  // namespace

std::map<Subject, std::expected<JoinedFigure, std::string>> cabling_wrong(const site::Site& site,
                                                                          const std::map<int, Record>& watches) {
  std::map<Subject, std::expected<JoinedFigure, std::string>> figures;
  const auto reported = reported_in(watches);
  for (const auto& port : plan::cabled_ports(site)) {
    if (port.end == nullptr) continue;
    const auto seen = reported.find(port.subject());
    if (seen == reported.end())
      figures.emplace(port.subject(), std::unexpected("The switch reports no neighbour there."));
    else
      figures.emplace(port.subject(), compared(site, port, seen->second));
  }
  return figures;
}

}  // namespace assay::judge
