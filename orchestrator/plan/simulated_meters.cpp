// simulated_meters: the views of simulated meters as JSON, and checks of the names in them.
#include "orchestrator/plan/simulated_meters.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

}  // namespace

void take_meters(const json& document, Faults& faults) {
  for (const auto& one : document.value("meters", json::array())) faults.meters.push_back(meter_from(one));
  for (const auto& one : document.value("swapped_outlets", json::array()))
    faults.swapped_outlets.push_back({.meter = one.at("meter"), .a = one.at("a"), .b = one.at("b")});
  for (const auto& one : document.value("lost_feeds", json::array())) {
    faults.lost_feeds.push_back({.meter = one.at("meter"), .after_s = one.value("after_s", 0.0)});
    if (one.contains("until_s")) faults.lost_feeds.back().until_s = one.at("until_s").get<double>();
  }
}

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

}  // namespace assay::plan
