// simulation: reads faults.json, and writes and reads the part of a plan that describes the simulation.
#include "orchestrator/plan/simulation.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "profiles/schema.h"

namespace assay::plan {
namespace {

using nlohmann::json;

/// Fields with a number that is always there, and its fallback.
constexpr std::pair<const char*, double SimulatedMeter::*> kNumbers[] = {{"gain", &SimulatedMeter::gain},
                                                                         {"offset", &SimulatedMeter::offset},
                                                                         {"scale", &SimulatedMeter::scale},
                                                                         {"lag_s", &SimulatedMeter::lag_s}};
/// Fields that may be left out.
constexpr std::pair<const char*, std::optional<double> SimulatedMeter::*> kOptional[] = {
    {"averaging_s", &SimulatedMeter::averaging_s},     {"quantum", &SimulatedMeter::quantum},
    {"stuck_after_s", &SimulatedMeter::stuck_after_s}, {"stale_after_s", &SimulatedMeter::stale_after_s},
    {"dead_after_s", &SimulatedMeter::dead_after_s},   {"constant", &SimulatedMeter::constant}};

SimulatedMeter meter_from(const json& object) {
  SimulatedMeter one{.meter = object.at("meter")};
  one.quantity = from_word<Quantity>(object.value("quantity", std::string("power"))).value_or(Quantity::power);
  for (const auto& [name, member] : kNumbers) one.*member = object.value(name, one.*member);
  for (const auto& [name, member] : kOptional)
    if (object.contains(name)) one.*member = object.at(name).get<double>();
  one.wraps_16_bit = object.value("wraps_16_bit", false);
  return one;
}

json json_of(const SimulatedMeter& one) {
  json object = {{"meter", one.meter}, {"quantity", word_of(one.quantity)}, {"wraps_16_bit", one.wraps_16_bit}};
  for (const auto& [name, member] : kNumbers) object[name] = one.*member;
  for (const auto& [name, member] : kOptional)
    if (one.*member) object[name] = *(one.*member);
  return object;
}

const Meter* meter_named(const site::Site& site, const std::string& name) {
  const auto found = std::ranges::find(site.meters, name, &Meter::name);
  return found == site.meters.end() ? nullptr : &*found;
}

InputError no_such_meter(const site::Site& site, const std::string& where, const std::string& name) {
  if (site.meters.empty())
    return {where, fmt::format("there is no meter '{}'", name),
            "a simulated site has meters where the profile judges by them (companions: power_feed)"};
  return {where, fmt::format("there is no meter '{}'", name),
          fmt::format("the simulated meters are {} to {}", site.meters.front().name, site.meters.back().name)};
}

/// Reads meters, swapped_outlets and lost_feeds of `document`, which meets its schema, into `faults`.
void take_meters(const json& document, Faults& faults) {
  for (const auto& one : document.value("meters", json::array())) faults.meters.push_back(meter_from(one));
  for (const auto& one : document.value("swapped_outlets", json::array()))
    faults.swapped_outlets.push_back({.meter = one.at("meter"), .a = one.at("a"), .b = one.at("b")});
  for (const auto& one : document.value("lost_feeds", json::array())) {
    faults.lost_feeds.push_back({.meter = one.at("meter"), .after_s = one.value("after_s", 0.0)});
    if (one.contains("until_s")) faults.lost_feeds.back().until_s = one.at("until_s").get<double>();
  }
}

/// Writes them, each only if there is one; take_meters reads them back unchanged.
void put_meters(const Faults& faults, json& document) {
  for (const auto& one : faults.meters) document["meters"].push_back(json_of(one));
  for (const auto& one : faults.swapped_outlets)
    document["swapped_outlets"].push_back({{"meter", one.meter}, {"a", one.a}, {"b", one.b}});
  for (const auto& one : faults.lost_feeds) {
    json object = {{"meter", one.meter}, {"after_s", one.after_s}};
    if (one.until_s) object["until_s"] = *one.until_s;
    document["lost_feeds"].push_back(std::move(object));
  }
}

/// Why they do not fit `site`: a meter or an outlet that it does not have, a feed that is none. Nothing if they do.
std::optional<InputError> check_meters(const Faults& faults, const site::Site& site, const std::string& where) {
  for (const auto& one : faults.meters) {
    if (meter_named(site, one.meter) == nullptr) return no_such_meter(site, where, one.meter);
  }
  for (const auto& one : faults.swapped_outlets) {
    const Meter* meter = meter_named(site, one.meter);
    if (meter == nullptr) return no_such_meter(site, where, one.meter);
    for (const int outlet : {one.a, one.b}) {
      if (!meter->outlets.contains(outlet))
        return InputError{where, fmt::format("{} has no outlet {}", one.meter, outlet),
                          fmt::format("it has {}", meter->outlets.size())};
    }
    if (one.a == one.b)
      return InputError{where, fmt::format("an outlet of {} is exchanged with itself", one.meter), "name two outlets"};
  }
  for (const auto& one : faults.lost_feeds) {
    const Meter* meter = meter_named(site, one.meter);
    if (meter == nullptr) return no_such_meter(site, where, one.meter);
    if (meter->subject != "feed")
      return InputError{where, fmt::format("{} is of a {}, not of a feed", one.meter, meter->subject),
                        "name the meter of a feed"};
    if (one.until_s && *one.until_s <= one.after_s)
      return InputError{where, fmt::format("the feed {} comes back before it is lost", one.meter),
                        "until_s is later than after_s"};
  }
  return std::nullopt;
}

SimulatedPart part_from(const json& object) {
  SimulatedPart one{.node = object.value("node", ""), .factor = object.at("factor")};
  if (object.contains("gpu")) one.gpu = object.at("gpu").get<int>();
  if (object.contains("link")) one.link = object.at("link").get<int>();
  return one;
}

json json_of(const SimulatedPart& one) {
  json object = {{"factor", one.factor}};
  if (!one.node.empty()) object["node"] = one.node;
  if (one.gpu) object["gpu"] = *one.gpu;
  if (one.link) object["link"] = *one.link;
  return object;
}

constexpr const char* kFaultsSchema = "assay.faults/1";

Faults faults_from(const json& document) {
  Faults faults;
  for (const auto& one : document.value("bad_nodes", json::array())) {
    faults.faults.push_back({.node = one.at("node"),
                             .metric = one.value("metric", ""),
                             .factor = one.at("factor"),
                             .probability = one.value("probability", 1.0)});
  }
  for (const auto& one : document.value("bad_links", json::array())) {
    faults.faults.push_back({.node = one.at("a"),
                             .other = one.at("b"),
                             .metric = one.value("metric", ""),
                             .factor = one.at("factor"),
                             .probability = one.value("probability", 1.0)});
  }
  faults.dead = document.value("dead", std::vector<std::string>());
  faults.spread = document.value("spread", std::map<std::string, double>());
  const json healthy = document.value("healthy", json::object());
  faults.healthy = {.margin = healthy.value("margin", Healthy{}.margin),
                    .spread = healthy.value("spread", Healthy{}.spread),
                    .run_to_run = healthy.value("run_to_run", Healthy{}.run_to_run)};
  take_meters(document, faults);
  for (const auto& one : document.value("switches", json::array()))
    faults.switches.push_back({.node = one.at("node"),
                               .parameter = one.at("parameter"),
                               .gain = one.value("gain", 0.0),
                               .stuck = one.value("stuck", false)});
  for (const auto& one : document.value("bad_parts", json::array())) faults.parts.push_back(part_from(one));
  for (const auto& one : document.value("knees", json::array()))
    faults.knees.push_back(
        {.nodes = one.at("nodes"), .metric = one.value("metric", ""), .counter = one.value("counter", "")});
  return faults;
}

json to_json(const Faults& faults) {
  json nodes = json::array();
  json links = json::array();
  for (const auto& one : faults.faults) {
    const json common = {{"metric", one.metric}, {"factor", one.factor}, {"probability", one.probability}};
    json& list = one.other.empty() ? nodes : links;
    list.push_back(one.other.empty() ? json{{"node", one.node}} : json{{"a", one.node}, {"b", one.other}});
    list.back().update(common);
  }
  json document = {{"schema", kFaultsSchema}, {"bad_nodes", std::move(nodes)}, {"bad_links", std::move(links)},
                   {"dead", faults.dead},     {"spread", faults.spread},       {"healthy", to_json(faults.healthy)}};
  put_meters(faults, document);
  for (const auto& one : faults.switches)
    document["switches"].push_back(
        {{"node", one.node}, {"parameter", one.parameter}, {"gain", one.gain}, {"stuck", one.stuck}});
  for (const auto& one : faults.parts) document["bad_parts"].push_back(json_of(one));
  for (const auto& one : faults.knees)
    document["knees"].push_back({{"nodes", one.nodes}, {"metric", one.metric}, {"counter", one.counter}});
  return document;
}

}  // namespace

std::expected<Faults, InputError> read_faults(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "faults.schema", where)) return std::unexpected(*problem);
  return faults_from(*document);
}

std::optional<InputError> check_faults(const Faults& faults, const site::Site& site, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& node : site.nodes) names.push_back(node.name);
  std::set<std::string_view> known(names.begin(), names.end());
  if (site.crossings)
    for (const auto& path : site.crossings->paths) known.insert(path.name);
  const auto check = [&](const std::string& name) -> std::optional<InputError> {
    if (name.empty() || known.contains(name)) return std::nullopt;
    return InputError{where, fmt::format("there is no node '{}'", name),
                      fmt::format("the simulated nodes are {} to {}", names.front(), names.back())};
  };
  for (const auto& one : faults.faults) {
    if (auto problem = check(one.node)) return problem;
    if (auto problem = check(one.other)) return problem;
    if (one.node == one.other)
      return InputError{where, fmt::format("a link leads from '{}' to itself", one.node), "name two nodes"};
  }
  for (const auto& name : faults.dead) {
    if (auto problem = check(name)) return problem;
  }
  for (const auto& one : faults.switches) {
    if (auto problem = check(one.node)) return problem;
  }
  for (const auto& one : faults.parts) {
    if (auto problem = check(one.node)) return problem;
  }
  return check_meters(faults, site, where);
}

json to_json(const Simulation& simulation) {
  return {{"seed", simulation.seed}, {"faults", to_json(simulation.faults)}};
}

json to_json(const Healthy& healthy) {
  return {{"margin", healthy.margin}, {"spread", healthy.spread}, {"run_to_run", healthy.run_to_run}};
}

std::expected<Simulation, InputError> simulation_from(const json& object, const std::string& where) {
  try {
    auto faults = read_faults(object.at("faults").dump(), where + ".faults");
    if (!faults) return std::unexpected(faults.error());
    return Simulation{.seed = object.at("seed"), .faults = std::move(*faults)};
  } catch (const json::exception& error) {
    return std::unexpected(
        InputError{where, error.what(), "it is written by `assay simulate`; simulate again instead of editing it"});
  }
}

}  // namespace assay::plan
