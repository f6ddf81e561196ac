// switch_list: strict reading of switches; every error has the place in the document and the correct form.
#include "probes/core/switch_list.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kSwitchHint = "a switch has name, address, credentials, and port, timeout_s and ports if need be";

bool is_name(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  return !text.empty() && text.size() <= kLongest;
}

bool is_path(std::string_view text) {
  constexpr std::size_t kLongest = 500;
  return !text.empty() && text.size() <= kLongest;
}

void add_port(const std::string& port, Switch& one) {
  if (!port.empty() && std::ranges::find(one.ports, port) == one.ports.end()) one.ports.push_back(port);
}

Switch switch_from(const json& entry, const std::string& here) {
  StrictObject fields(entry, here, kSwitchHint);
  Switch one{.device = {.name = fields.text("name", is_name),
                        .kind = MeterKind::snmp,
                        .address = fields.text("address", is_path),
                        .subject = "meter"},
             .ports = {}};
  one.device.credentials = fields.text("credentials", is_path);
  if (fields.optional("port") != nullptr) one.device.port = static_cast<int>(fields.whole("port", 1, 65535));
  if (fields.optional("timeout_s") != nullptr) one.device.timeout_s = fields.number("timeout_s", 0.05, 30);
  if (fields.optional("ports") != nullptr) {
    for (const auto& port : fields.texts("ports")) {
      const std::size_t before = one.ports.size();
      if (is_name(port)) add_port(port, one);
      if (one.ports.size() == before)
        throw InputError{fields.path("ports"), fmt::format("'{}' appears twice, or is no name of a port", port),
                         "as the switch names it (ifName): \"swp31\""};
    }
  }
  fields.done();
  return one;
}

std::vector<Switch> all_switches(const json& list, const std::string& here) {
  if (!list.is_array() || list.size() > kMostSwitches)
    throw InputError{here, fmt::format("is not a list of at most {} switches", kMostSwitches), kSwitchHint};
  std::vector<Switch> all;
  std::set<std::string> names, devices;
  for (const auto& entry : list) {
    const std::string place = fmt::format("{}[{}]", here, all.size());
    Switch one = switch_from(entry, place);
    if (!names.insert(one.device.name).second)
      throw InputError{place + ".name", fmt::format("'{}' appears twice", one.device.name),
                       "every switch has a name of its own, that of the leaf in the site"};
    if (!devices.insert(fmt::format("{} {}", one.device.address, one.device.port)).second)
      throw InputError{place + ".address", fmt::format("'{}' is the address of another switch", one.device.address),
                       "list each switch once"};
    all.push_back(std::move(one));
  }
  return all;
}

/// Adds the ports that the nodes of `site` are cabled to.
void add_ports_of_nodes(const json& site, std::vector<Switch>& switches) {
  if (!site.contains("nodes") || !site.at("nodes").is_array()) return;
  for (const auto& node : site.at("nodes")) {
    if (!node.is_object() || !node.contains("planes")) continue;
    for (const auto& plane : node.at("planes")) {
      for (const auto& port : plane) {
        const std::string leaf = port.value("leaf", "");
        const auto found = std::ranges::find(switches, leaf.empty() ? node.value("leaf", "") : leaf,
                                             [](const Switch& one) { return one.device.name; });
        if (found != switches.end()) add_port(port.value("switch_port", ""), *found);
      }
    }
  }
}

}  // namespace

std::expected<std::vector<Switch>, InputError> switches_from(const json& list, const std::string& here) {
  return read_strictly("", [&] { return all_switches(list, here); });
}

json to_json(const std::vector<Switch>& switches) {
  json list = json::array();
  for (const auto& [device, ports] : switches) {
    json entry = {{"name", device.name},
                  {"address", device.address},
                  {"credentials", device.credentials},
                  {"timeout_s", device.timeout_s}};
    if (device.port != 0) entry["port"] = device.port;
    if (!ports.empty()) entry["ports"] = ports;
    list.push_back(std::move(entry));
  }
  return list;
}

std::expected<std::vector<Switch>, InputError> read_switches_of(std::string_view text, const std::string& path) {
  const auto document = parse_json(text, path, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  const json* site = &*document;
  if (document->is_object() && document->contains("site")) site = &document->at("site");
  if (!site->is_object() || !site->contains("switches"))
    return std::unexpected(
        InputError{path, "has no switches", "add the list switches to the site file (docs/FORMATS.md)"});
  return read_strictly(path, [&] {
    auto all = all_switches(site->at("switches"), "switches");
    try {
      add_ports_of_nodes(*site, all);
    } catch (const json::exception&) {
      throw InputError{"nodes", "has planes that cannot be read", "`assay site check` names the place"};
    }
    return all;
  });
}

Subject switch_port_subject(const std::string& name, const std::string& port) {
  return {.kind = "switch_port", .id = name + "/" + port};
}

}  // namespace assay
