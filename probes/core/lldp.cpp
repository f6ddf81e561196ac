// lldp: both JSON forms of lldpctl.
#include "probes/core/lldp.h"

#include <fmt/format.h>

#include "probes/core/json_io.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kLldpHint = "give what `lldpctl -f json` printed, unchanged";

/// A member of an object as a list: of one thing json has the thing itself, json0 an array.
std::vector<json> list_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) return {};
  if (!found->is_array()) return {*found};
  return {found->begin(), found->end()};
}

/// The text of a member: "descr": "swp7", or "descr": [{"value": "swp7"}].
std::string text_of(const json& object, const char* name) {
  const auto values = list_of(object, name);
  if (values.empty()) return "";
  const json& first = values.front();
  if (first.is_string()) return first.get<std::string>();
  return first.is_object() && first.contains("value") && first.at("value").is_string()
             ? first.at("value").get<std::string>()
             : "";
}

/// An element named by a key ("eth1": {…}) or by a member ("name": "eth1"), and its rest.
std::vector<std::pair<std::string, json>> named(const json& object) {
  if (object.contains("name"))
    return {{object.at("name").is_string() ? object.at("name").get<std::string>() : text_of(object, "name"), object}};
  std::vector<std::pair<std::string, json>> all;
  for (const auto& [name, body] : object.items()) all.emplace_back(name, body);
  return all;
}

/// A chassis without a name is its own body: {"id": {…}}.
std::string system_of(const json& interface) {
  for (const auto& chassis : list_of(interface, "chassis")) {
    if (!chassis.is_object()) continue;
    if (chassis.contains("name")) return text_of(chassis, "name");
    if (chassis.size() == 1 && !chassis.contains("id") && chassis.begin()->is_object()) return chassis.begin().key();
  }
  return "";
}

void take_port(const json& interface, Neighbour& neighbour) {
  const auto ports = list_of(interface, "port");
  if (ports.empty()) return;
  const std::string description = text_of(ports.front(), "descr");
  neighbour.system_port = description;
  for (const auto& id : list_of(ports.front(), "id")) {
    const std::string type = text_of(id, "type"), value = text_of(id, "value");
    if ((type != "ifname" && type != "local" && type != "ifalias") || value.empty()) continue;
    const bool index = type == "local" && value.find_first_not_of("0123456789") == std::string::npos;
    neighbour.system_port = index && !description.empty() ? description : value;
    neighbour.other_name = neighbour.system_port == value ? description : value;
    return;
  }
}

}  // namespace

std::expected<std::vector<Neighbour>, InputError> read_lldp(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (!document->is_object() || !document->contains("lldp"))
    return std::unexpected(InputError{where, "has no member 'lldp'", kLldpHint});
  std::vector<Neighbour> neighbours;
  for (const auto& part : list_of(*document, "lldp")) {
    std::size_t number = 0;
    for (const auto& entry : list_of(part, "interface")) {
      const std::string here = fmt::format("{}: lldp.interface[{}]", where, number++);
      if (!entry.is_object() || entry.empty()) return std::unexpected(InputError{here, "is no interface", kLldpHint});
      for (const auto& [name, body] : named(entry)) {
        if (name.empty() || !body.is_object() || !body.contains("chassis") || !body.contains("port")) {
          return std::unexpected(InputError{here, fmt::format("'{}' has no name, chassis or port", name), kLldpHint});
        }
        neighbours.push_back({.interface = name, .system = system_of(body), .system_port = "", .other_name = ""});
        take_port(body, neighbours.back());
      }
    }
  }
  return neighbours;
}

}  // namespace assay
