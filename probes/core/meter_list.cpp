// meter_list: strict reading of meters; every error has the place in the document and the correct form.
#include "probes/core/meter_list.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"
#include "probes/core/suggest.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kMeterHint =
    "a meter has name, kind, address, subject, and what docs/FORMATS.md lists for its kind";
constexpr std::array kMeterSubjects = {"node", "rack", "feed", "shelf", "cdu", "meter"};
constexpr int kMostOutlets = 1000;
constexpr std::int64_t kLastRegister = 65535;

bool is_meter_name(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= kLongest && text.front() != '.' && text.front() != '-' &&
         std::ranges::all_of(text, plain);
}

bool is_meter_address(std::string_view text) {
  constexpr std::size_t kLongest = 253;
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_") ==
             std::string_view::npos &&
         text.front() != '-';
}

bool is_meter_label(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  return text.size() <= kLongest && std::ranges::all_of(text, [](char c) {
           return c == ' ' || is_meter_name({&c, 1}) || c == '.' || c == '-';
         });
}

bool is_meter_path(std::string_view text) {
  constexpr std::size_t kLongest = 500;
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_of(std::string_view("\0\n", 2)) == std::string_view::npos;
}

bool is_document_name(std::string_view text) {
  constexpr std::size_t kLongest = 500;
  return !text.empty() && text.size() <= kLongest;
}

/// "sha256//" and the 44 characters of 32 bytes in base64, as curl takes a pin.
bool is_pin(std::string_view text) {
  constexpr std::size_t kLength = 8 + 44;
  return text.size() == kLength && text.starts_with("sha256//") && text.ends_with('=');
}

/// The word at `name` as an enumerator.
template <Vocabulary Enum>
Enum word_at(StrictObject& fields, std::string_view name) {
  const std::string text = fields.text(name);
  if (const auto found = from_word<Enum>(text)) return *found;
  std::vector<std::string> known;
  for (const auto& word : words_of(Enum{})) known.emplace_back(word.text);
  throw InputError{fields.path(name), fmt::format("'{}' is not known", text), suggestion(text, known)};
}

MeterRegister register_from(const json& entry, const std::string& here) {
  StrictObject fields(entry, here,
                      "a register has quantity, address, type, scale, and table and word_order if need be");
  MeterRegister one{.quantity = word_at<Quantity>(fields, "quantity"),
                    .address = static_cast<int>(fields.whole("address", 0, kLastRegister)),
                    .type = word_at<RegisterType>(fields, "type"),
                    .scale = fields.number("scale", 1e-12, 1e12)};
  if (fields.optional("table") != nullptr) {
    const std::string table = fields.text("table");
    if (table != "input" && table != "holding") fields.refuse("table", "is neither input nor holding");
    one.input = table == "input";
  }
  if (fields.optional("word_order") != nullptr) {
    const std::string order = fields.text("word_order");
    if (order != "high_first" && order != "low_first")
      fields.refuse("word_order", "is neither high_first nor low_first");
    one.low_word_first = order == "low_first";
  }
  fields.done();
  return one;
}

std::map<int, std::string> outlets_from(const json& object, const std::string& here) {
  if (!object.is_object()) throw InputError{here, "is not an object", R"(outlet numbers and nodes: {"1": "n01"})"};
  std::map<int, std::string> outlets;
  for (const auto& [key, value] : object.items()) {
    const bool digits = !key.empty() && key.size() < 5 && key.front() != '0' &&
                        key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(key) > kMostOutlets || !value.is_string())
      throw InputError{fmt::format("{}.{}", here, key), "is not an outlet number from 1 with the name of a node",
                       R"(outlet numbers and nodes: {"1": "n01"})"};
    outlets.emplace(std::stoi(key), value.get<std::string>());
  }
  return outlets;
}

void take_accuracy(StrictObject& fields, Meter& meter) {
  if (fields.optional("averaging_s") != nullptr) meter.averaging_s = fields.number("averaging_s", 0, 86400);
  if (fields.optional("accuracy") != nullptr) meter.accuracy = fields.number("accuracy", 1e-6, 0.5);
  if (fields.optional("accuracy_source") != nullptr)
    meter.accuracy_source = fields.text("accuracy_source", is_document_name);
  if (fields.optional("rating_w") != nullptr) meter.rating_w = fields.number("rating_w", 1, 1e12);
  if (fields.optional("nominal_v") != nullptr) meter.nominal_v = fields.number("nominal_v", 1, 1e6);
  if (fields.optional("nominal_hz") != nullptr) meter.nominal_hz = fields.number("nominal_hz", 1, 1e3);
  if (fields.optional("timeout_s") != nullptr) meter.timeout_s = fields.number("timeout_s", 0.05, 30);
  if ((meter.accuracy || meter.averaging_s) && meter.accuracy_source.empty())
    throw InputError{fields.path("accuracy_source"), "is missing beside accuracy or averaging_s",
                     "name the document that states them: the data sheet, or the calibration certificate"};
}

/// Fields that each kind needs, and those of others that it refuses.
void check_kind(StrictObject& fields, const json& entry, const Meter& meter) {
  struct FieldOf {
    const char* name;
    MeterKind kind;
    bool needed;
  };
  constexpr FieldOf kFields[] = {{"model", MeterKind::snmp, true},        {"outlets", MeterKind::snmp, false},
                                 {"registers", MeterKind::modbus, true},  {"unit", MeterKind::modbus, false},
                                 {"resources", MeterKind::redfish, true}, {"public_key", MeterKind::redfish, true}};
  for (const auto& [name, kind, needed] : kFields) {
    if (entry.contains(name) && kind != meter.kind)
      throw InputError{fields.path(name), fmt::format("is not a field of a meter of kind {}", meter.kind),
                       fmt::format("it belongs to meters of kind {}", kind)};
    if (needed && kind == meter.kind && !entry.contains(name))
      throw InputError{fields.path(name), fmt::format("is missing, and a meter of kind {} needs it", meter.kind),
                       "docs/FORMATS.md has the fields of each kind of meter"};
  }
  const bool needs_login = meter.kind != MeterKind::modbus;
  if (needs_login && meter.credentials.empty())
    throw InputError{fields.path("credentials"), fmt::format("is missing, and a meter of kind {} needs it", meter.kind),
                     "the path of a file of mode 0600 on the head, never the secret itself"};
  if (!needs_login && !meter.credentials.empty())
    throw InputError{fields.path("credentials"), "is not a field of a meter of kind modbus", "Modbus has no login"};
}

void check_subject(StrictObject& fields, const Meter& meter) {
  if (std::ranges::find(kMeterSubjects, meter.subject) == kMeterSubjects.end())
    throw InputError{fields.path("subject"), fmt::format("'{}' is not known", meter.subject),
                     "known are: node, rack, feed, shelf, cdu, meter"};
  if (meter.subject == "rack" && meter.rack.empty()) fields.refuse("rack", "is missing, and the subject is a rack");
  if (meter.subject == "node" && meter.nodes.size() != 1)
    throw InputError{fields.path("nodes"), "has not one node, and the subject is a node", R"(write "nodes": ["n01"])"};
  if (meter.kind == MeterKind::ipmi && meter.subject == "rack")
    throw InputError{fields.path("subject"), "is a rack, and IPMI ends at 65,535 W", "IPMI meters are of nodes"};
}

Meter meter_from(const json& entry, const std::string& here) {
  StrictObject fields(entry, here, kMeterHint);
  Meter meter{.name = fields.text("name", is_meter_name),
              .kind = word_at<MeterKind>(fields, "kind"),
              .address = fields.text("address", is_meter_address)};
  if (fields.optional("port") != nullptr) meter.port = static_cast<int>(fields.whole("port", 1, 65535));
  meter.subject = fields.text("subject");
  if (fields.optional("rack") != nullptr) meter.rack = fields.text("rack", is_meter_label);
  if (fields.optional("feed") != nullptr) meter.feed = fields.text("feed", is_meter_label);
  if (fields.optional("nodes") != nullptr) meter.nodes = fields.texts("nodes");
  if (const json* found = fields.optional("outlets")) meter.outlets = outlets_from(*found, fields.path("outlets"));
  if (fields.optional("model") != nullptr) meter.model = word_at<MeterModel>(fields, "model");
  if (fields.optional("registers") != nullptr) {
    for (const auto& one : fields.list("registers"))
      meter.registers.push_back(
          register_from(one, fmt::format("{}[{}]", fields.path("registers"), meter.registers.size())));
  }
  if (fields.optional("unit") != nullptr) meter.unit = static_cast<int>(fields.whole("unit", 0, 255));
  if (fields.optional("resources") != nullptr) {
    meter.resources = fields.texts("resources");
    for (const auto& path : meter.resources)
      if (!path.starts_with("/redfish/v1/") || path.find_first_of(" \n\r?#") != std::string::npos)
        throw InputError{fields.path("resources"), fmt::format("'{}' is not a path below /redfish/v1/", path),
                         "as /redfish/v1/Chassis/1/EnvironmentMetrics"};
  }
  if (fields.optional("credentials") != nullptr) meter.credentials = fields.text("credentials", is_meter_path);
  if (fields.optional("public_key") != nullptr) {
    meter.public_key = fields.text("public_key");
    if (!is_pin(meter.public_key))
      throw InputError{fields.path("public_key"), "is not a pin of the form sha256//BASE64",
                       "docs/FORMATS.md has the openssl command that prints it"};
  }
  take_accuracy(fields, meter);
  fields.done();
  check_kind(fields, entry, meter);
  check_subject(fields, meter);
  return meter;
}

void check_node(const std::string& node, const std::string& where, const std::vector<std::string>& nodes) {
  if (nodes.empty() || std::ranges::find(nodes, node) != nodes.end()) return;
  throw InputError{where, fmt::format("the site has no node '{}'", node), suggestion(node, nodes)};
}

/// Identity of a device: a gateway has several Modbus units, a Redfish service several resources.
std::string device_of(const Meter& meter) {
  return fmt::format("{} {} {} {} {}", word_of(meter.kind), meter.address, meter.port, meter.unit,
                     fmt::join(meter.resources, " "));
}

std::vector<Meter> all_meters(const json& list, const std::string& here, const std::vector<std::string>& nodes) {
  if (!list.is_array() || list.size() > kMostMeters)
    throw InputError{here, fmt::format("is not a list of at most {} meters", kMostMeters), kMeterHint};
  std::vector<Meter> meters;
  std::set<std::string> names;
  std::map<std::string, std::string> devices;  // to the name of the meter
  for (const auto& entry : list) {
    const std::string place = fmt::format("{}[{}]", here, meters.size());
    Meter meter = meter_from(entry, place);
    if (!names.insert(meter.name).second)
      throw InputError{place + ".name", fmt::format("'{}' appears twice", meter.name),
                       "every meter has a name of its own"};
    const auto [device, is_new] = devices.emplace(device_of(meter), meter.name);
    if (!is_new)
      throw InputError{place + ".address", fmt::format("is the device of the meter '{}'", device->second),
                       "one device is one meter: its power would count twice"};
    std::set<std::string> once;
    for (const auto& node : meter.nodes) {
      check_node(node, place + ".nodes", nodes);
      if (!once.insert(node).second)
        throw InputError{place + ".nodes", fmt::format("'{}' appears twice", node), "list each node once"};
    }
    for (const auto& [outlet, node] : meter.outlets)
      check_node(node, fmt::format("{}.outlets.{}", place, outlet), nodes);
    meters.push_back(std::move(meter));
  }
  return meters;
}

json to_json(const MeterRegister& one) {
  return {{"quantity", one.quantity},
          {"address", one.address},
          {"type", one.type},
          {"table", one.input ? "input" : "holding"},
          {"word_order", one.low_word_first ? "low_first" : "high_first"},
          {"scale", one.scale}};
}

}  // namespace

Subject Meter::subject_of() const {
  if (subject == "node") return {.kind = subject, .id = nodes.front()};
  if (subject == "rack") return {.kind = subject, .id = rack};
  return {.kind = subject, .id = name};
}

std::expected<std::vector<Meter>, InputError> meters_from(const json& list, const std::string& here,
                                                          const std::vector<std::string>& nodes) {
  return read_strictly("", [&] { return all_meters(list, here, nodes); });
}

json to_json(const std::vector<Meter>& meters) {
  json list = json::array();
  for (const auto& meter : meters) {
    json entry = {{"name", meter.name},
                  {"kind", meter.kind},
                  {"address", meter.address},
                  {"subject", meter.subject},
                  {"timeout_s", meter.timeout_s}};
    if (meter.port != 0) entry["port"] = meter.port;
    if (!meter.rack.empty()) entry["rack"] = meter.rack;
    if (!meter.feed.empty()) entry["feed"] = meter.feed;
    if (!meter.nodes.empty()) entry["nodes"] = meter.nodes;
    for (const auto& [outlet, node] : meter.outlets) entry["outlets"][std::to_string(outlet)] = node;
    if (meter.model) entry["model"] = *meter.model;
    for (const auto& one : meter.registers) entry["registers"].push_back(to_json(one));
    if (meter.kind == MeterKind::modbus) entry["unit"] = meter.unit;
    if (!meter.resources.empty()) entry["resources"] = meter.resources;
    if (!meter.credentials.empty()) entry["credentials"] = meter.credentials;
    if (!meter.public_key.empty()) entry["public_key"] = meter.public_key;
    if (meter.averaging_s) entry["averaging_s"] = *meter.averaging_s;
    if (meter.accuracy) entry["accuracy"] = *meter.accuracy;
    if (!meter.accuracy_source.empty()) entry["accuracy_source"] = meter.accuracy_source;
    if (meter.rating_w) entry["rating_w"] = *meter.rating_w;
    if (meter.nominal_v) entry["nominal_v"] = *meter.nominal_v;
    if (meter.nominal_hz) entry["nominal_hz"] = *meter.nominal_hz;
    list.push_back(std::move(entry));
  }
  return list;
}

std::expected<std::vector<Meter>, InputError> read_meters_of(std::string_view text, const std::string& path) {
  const auto document = parse_json(text, path, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  const json* site = &*document;
  if (document->is_object() && document->contains("site")) site = &document->at("site");
  if (!site->is_object() || !site->contains("meters"))
    return std::unexpected(InputError{path, "has no meters", "add the list meters to the site file (docs/FORMATS.md)"});
  return read_strictly(path, [&] { return all_meters(site->at("meters"), "meters", {}); });
}

}  // namespace assay
