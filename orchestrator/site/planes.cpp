// planes: reads and writes planes, and looks up ports.
#include "orchestrator/site/planes.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/site/site.h"

namespace assay::site {
namespace {

using nlohmann::json;

/// The fields of a port, in the document and in the struct.
constexpr std::array<std::pair<const char*, std::string Port::*>, 6> kFields = {{{"interface", &Port::interface},
                                                                                 {"device", &Port::device},
                                                                                 {"address", &Port::address},
                                                                                 {"rail", &Port::rail},
                                                                                 {"leaf", &Port::leaf},
                                                                                 {"switch_port", &Port::switch_port}}};

Port port_from(const json& entry) {
  Port port;
  for (const auto& [name, field] : kFields) port.*field = entry.value(name, "");
  return port;
}

json to_json(const Port& port) {
  json entry = json::object();
  for (const auto& [name, field] : kFields) {
    if (!(port.*field).empty()) entry[name] = port.*field;
  }
  return entry;
}

std::optional<InputError> check_ports(const std::vector<Port>& ports, const std::string& here) {
  std::set<std::string> rails, names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& port = ports[i];
    const std::string there = fmt::format("{}[{}]", here, i);
    if (port.interface.empty() && port.device.empty())
      return InputError{there, "has neither interface nor device",
                        "name the network interface, the RDMA device or both"};
    if (!rails.insert(port.rail).second) {
      return InputError{
          there + ".rail",
          port.rail.empty() ? "is missing on two ports of the plane" : fmt::format("'{}' appears twice", port.rail),
          "the ports of a node in one plane need different rails"};
    }
    for (const auto& [field, name] : {std::pair("interface", port.interface), std::pair("device", port.device)}) {
      if (!name.empty() && !names.insert(fmt::format("{} {}", field, name)).second)
        return InputError{fmt::format("{}.{}", there, field), fmt::format("'{}' appears twice", name),
                          "list each port once in a plane"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::expected<Planes, InputError> planes_from(const json& object, const std::string& here) {
  Planes planes;
  for (const auto& [plane, entries] : object.items()) {
    auto& ports = planes[plane];
    for (const auto& entry : entries) ports.push_back(port_from(entry));
    if (auto problem = check_ports(ports, fmt::format("{}.planes.{}", here, plane)))
      return std::unexpected(std::move(*problem));
  }
  return planes;
}

json to_json(const Planes& planes) {
  json object = json::object();
  for (const auto& [plane, ports] : planes) {
    json entries = json::array();
    for (const auto& port : ports) entries.push_back(to_json(port));
    object[plane] = std::move(entries);
  }
  return object;
}

std::vector<std::string> rails_of(const Site& site, std::string_view plane) {
  std::vector<std::string> rails;
  for (const auto& node : site.nodes) {
    const auto ports = node.planes.find(std::string(plane));
    if (ports == node.planes.end()) continue;
    for (const auto& port : ports->second) {
      if (std::ranges::find(rails, port.rail) == rails.end()) rails.push_back(port.rail);
    }
  }
  return rails;
}

const Port* port_of(const Node& node, std::string_view plane, std::string_view rail) {
  const auto ports = node.planes.find(std::string(plane));
  if (ports == node.planes.end()) return nullptr;
  const auto port = std::ranges::find(ports->second, rail, &Port::rail);
  return port == ports->second.end() ? nullptr : &*port;
}

std::string leaf_of(const Node& node, std::string_view plane, std::string_view rail) {
  const Port* port = plane.empty() ? nullptr : port_of(node, plane, rail);
  return port == nullptr || port->leaf.empty() ? node.leaf : port->leaf;
}

std::string port_text(const Node& node, const Port& port, std::string_view field) {
  const auto found = std::ranges::find_if(kFields, [&](const auto& one) { return one.first == field; });
  if (found == kFields.end()) return "";
  const std::string& text = port.*(found->second);
  return text.empty() && field == "leaf" ? node.leaf : text;
}

}  // namespace assay::site
