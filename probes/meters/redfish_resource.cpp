// redfish_resource: property names, units and metadata of DMTF's schemas (DSP8010 2025.4).
#include "probes/meters/redfish_resource.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "probes/meters/session.h"

namespace assay::meters {
namespace {

using nlohmann::json;

struct Property {
  const char* name;
  Quantity quantity;
  double scale;  ///< to the base unit
};

constexpr double kLitresPerMinute = 1.0 / 60000;
constexpr double kKilowattHour_j = 3.6e6;
constexpr std::array<Property, 16> kProperties = {{{"PowerWatts", Quantity::power, 1},
                                                   {"InputPowerWatts", Quantity::power, 1},
                                                   {"OutputPowerWatts", Quantity::output_power, 1},
                                                   {"SupplyPressurekPa", Quantity::supply_pressure, 1000},
                                                   {"EnergykWh", Quantity::energy, kKilowattHour_j},
                                                   {"EnergyJoules", Quantity::energy, 1},
                                                   {"Voltage", Quantity::voltage, 1},
                                                   {"InputVoltage", Quantity::voltage, 1},
                                                   {"CurrentAmps", Quantity::current, 1},
                                                   {"InputCurrentAmps", Quantity::current, 1},
                                                   {"FrequencyHz", Quantity::frequency, 1},
                                                   {"FlowLitersPerMinute", Quantity::flow, kLitresPerMinute},
                                                   {"SupplyTemperatureCelsius", Quantity::supply_temperature, 1},
                                                   {"ReturnTemperatureCelsius", Quantity::return_temperature, 1},
                                                   {"DeltaPressurekPa", Quantity::delta_pressure, 1000},
                                                   {"HeatRemovedkW", Quantity::heat, 1000}}};

/// A unit that ReadingUnits may state: UCUM's, and the words that some services write.
struct SensorUnit {
  std::string_view word;
  Quantity quantity;
  double scale;  ///< to the base unit
};
constexpr SensorUnit kSensorUnits[] = {{"W", Quantity::power, 1},
                                       {"Watts", Quantity::power, 1},
                                       {"W", Quantity::output_power, 1},
                                       {"W", Quantity::heat, 1},
                                       {"Pa", Quantity::supply_pressure, 1},
                                       {"Pa", Quantity::delta_pressure, 1},
                                       {"Cel", Quantity::supply_temperature, 1},
                                       {"Cel", Quantity::return_temperature, 1},
                                       {"V", Quantity::voltage, 1},
                                       {"Volts", Quantity::voltage, 1},
                                       {"A", Quantity::current, 1},
                                       {"Amps", Quantity::current, 1},
                                       {"Hz", Quantity::frequency, 1},
                                       {"J", Quantity::energy, 1},
                                       {"W.s", Quantity::energy, 1},
                                       {"W.h", Quantity::energy, 3600},
                                       {"Wh", Quantity::energy, 3600},
                                       {"L/min", Quantity::flow, kLitresPerMinute},
                                       {"LPM", Quantity::flow, kLitresPerMinute},
                                       {"L/s", Quantity::flow, 1e-3},
                                       {"m3/h", Quantity::flow, 1.0 / 3600},
                                       {"m3/s", Quantity::flow, 1}};
constexpr std::pair<char, double> kUnitPrefixes[] = {{'u', 1e-6}, {'m', 1e-3}, {'k', 1e3}, {'M', 1e6}, {'G', 1e9}};

/// The factor from `unit` to the base unit of `quantity`; nothing if it is none of its units.
std::optional<double> scale_of(std::string_view unit, Quantity quantity) {
  for (const auto& one : kSensorUnits) {
    if (one.quantity != quantity || !unit.ends_with(one.word)) continue;
    if (unit == one.word) return one.scale;
    const auto* prefix = std::ranges::find(kUnitPrefixes, unit.front(), [](const auto& known) { return known.first; });
    if (unit.size() == one.word.size() + 1 && prefix != std::end(kUnitPrefixes)) return one.scale * prefix->second;
  }
  return std::nullopt;
}

bool is_number(const json* value) {
  return value != nullptr && value->is_number() && std::isfinite(value->get<double>());
}

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_at(const json& object, const char* name) {
  const json* found = member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

bool is_off(const json& object) {
  const json* status = member(object, "Status");
  if (status == nullptr) return false;
  const std::string state = text_at(*status, "State");
  return state == "Absent" || state == "Disabled" || state == "UnavailableOffline";
}

/// Properties of a reading by its Sensor, or the excerpt of one.
void take_metadata(const json& sensor, MeterReading& one) {
  const std::string implementation = text_at(sensor, "Implementation");
  if (implementation == "PhysicalSensor") one.origin = Origin::measured;
  if (implementation == "Synthesized") one.origin = Origin::synthesised;
  if (const auto averaging_s = iso_duration_s(text_at(sensor, "AveragingInterval"))) one.averaging_s = averaging_s;
  if (const json* accuracy = member(sensor, "Accuracy"); is_number(accuracy))
    one.accuracy = accuracy->get<double>() / 100;  // a per cent figure in the schema
  if (const json* precision = member(sensor, "Precision"); is_number(precision) && precision->get<double>() >= 0)
    one.quantum = std::pow(10.0, -precision->get<double>());
  one.stated_s = iso_time_s(text_at(sensor, "ReadingTime"));
}

/// A unit that the sensor states goes before that of the property's name.
MeterReading reading_of(const json& value, const json& sensor, Property property, const std::string& path) {
  if (const std::string unit = text_at(sensor, "ReadingUnits"); !unit.empty()) {
    const auto scale = scale_of(unit, property.quantity);
    if (!scale)
      throw MeterFault(fmt::format("{}: ReadingUnits '{}' of {} is not known", path, printable(unit), property.name));
    property.scale = *scale;
  }
  MeterReading one{.quantity = property.quantity, .instrument = fmt::format("redfish {} {}", path, property.name)};
  if (sensor.is_object()) take_metadata(sensor, one);
  one.quantum *= property.scale;
  one.absent = !is_number(&value) || is_off(sensor);
  if (!one.absent) one.value = value.get<double>() * property.scale;
  return one;
}

/// The quantity of a Sensor, by its ReadingType.
std::optional<Property> property_of_sensor(const json& sensor) {
  const std::string type = text_at(sensor, "ReadingType");
  if (type == "Power") return Property{"Reading", Quantity::power, 1};
  if (type == "Voltage") return Property{"Reading", Quantity::voltage, 1};
  if (type == "Current") return Property{"Reading", Quantity::current, 1};
  if (type == "EnergykWh") return Property{"Reading", Quantity::energy, kKilowattHour_j};
  if (type == "EnergyJoules") return Property{"Reading", Quantity::energy, 1};
  if (type == "LiquidFlowLPM") return Property{"Reading", Quantity::flow, kLitresPerMinute};
  if (type == "LiquidFlow") return Property{"Reading", Quantity::flow, 1e-3};
  if (type == "Frequency") return Property{"Reading", Quantity::frequency, 1};
  return std::nullopt;
}

/// Adds one more power supply to `sum`, or says that the sum is not known.
void add_part(MeterReading& sum, const MeterReading& one) {
  const bool adds = sum.quantity != Quantity::voltage && sum.quantity != Quantity::frequency;
  if (!adds) {
    if (sum.absent && !one.absent) sum = one;
    sum.part = false;
    return;
  }
  sum.absent = sum.absent || one.absent;
  sum.value = sum.absent ? 0 : sum.value + one.value;
  sum.taken_s = (sum.taken_s + one.taken_s) / 2;
  sum.quantum = std::max(sum.quantum, one.quantum);
  sum.instrument += " + " + one.instrument;
  if (one.origin == Origin::synthesised || sum.origin == Origin::unknown) sum.origin = one.origin;
  if (!sum.averaging_s || !one.averaging_s)
    sum.averaging_s.reset();
  else
    sum.averaging_s = std::max(*sum.averaging_s, *one.averaging_s);
  if (!sum.accuracy || !one.accuracy)
    sum.accuracy.reset();
  else
    sum.accuracy = std::max(*sum.accuracy, *one.accuracy);
  if (one.stated_s) sum.stated_s = std::min(sum.stated_s.value_or(*one.stated_s), *one.stated_s);
}

/// PowerConsumedWatts of the older resource Power (deprecated by DMTF in 2020.4). Of several controls some are parts.
MeterReading whole_power(const json& controls, const std::string& path) {
  if (controls.size() != 1)
    throw MeterFault(fmt::format("{}: PowerControl has {} entries, not the one of the whole", path, controls.size()));
  const json* value = member(controls[0], "PowerConsumedWatts");
  if (value == nullptr) throw MeterFault(fmt::format("{}: PowerControl has no PowerConsumedWatts", path));
  return reading_of(*value, controls[0], {"PowerConsumedWatts", Quantity::power, 1}, path);
}

/// A detector counts if it is present, enabled and reports a state; Warning and Critical are a leak (LeakDetector.v1).
std::vector<MeterReading> leak_readings(const json& detector, const std::string& path) {
  const std::string state = text_at(detector, "DetectorState");
  const bool wet = state == "Warning" || state == "Critical";
  const bool works = (wet || state == "OK") && !is_off(detector);
  MeterReading one{.quantity = Quantity::leak_detectors,
                   .value = works ? 1.0 : 0.0,
                   .quantum = 1,
                   .instrument = fmt::format("redfish {} DetectorState", path)};
  one.origin = Origin::measured;
  MeterReading leak = one;
  leak.quantity = Quantity::leaks;
  leak.value = wet ? 1.0 : 0.0;
  return {std::move(one), std::move(leak)};
}

}  // namespace

void join_leak_detectors(std::vector<MeterReading>& answer) {
  for (const Quantity quantity : {Quantity::leak_detectors, Quantity::leaks}) {
    const auto first = std::ranges::find(answer, quantity, &MeterReading::quantity);
    if (first == answer.end()) continue;
    const auto rest = std::ranges::remove_if(first + 1, answer.end(), [&](const MeterReading& one) {
      if (one.quantity != quantity) return false;
      first->value += one.value;
      return true;
    });
    answer.erase(rest.begin(), rest.end());
  }
}

std::optional<double> iso_duration_s(std::string_view text) {
  if (!text.starts_with("P")) return std::nullopt;
  double total = 0, unit_s = 86400;
  bool any = false, in_time = false;
  std::string_view rest = text.substr(1);
  while (!rest.empty()) {
    if (rest.front() == 'T' && !in_time) {
      in_time = true;
      rest.remove_prefix(1);
      continue;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || end == rest.data() + rest.size() || number < 0) return std::nullopt;
    if (*end == 'D' && !in_time) {
      unit_s = 86400;
    } else if (*end == 'H' && in_time) {
      unit_s = 3600;
    } else if (*end == 'M' && in_time) {
      unit_s = 60;
    } else if (*end == 'S' && in_time) {
      unit_s = 1;
    } else {
      return std::nullopt;
    }
    total += number * unit_s;
    any = true;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  }
  return any ? std::optional(total) : std::nullopt;
}

std::optional<double> iso_time_s(std::string_view text) {
  const auto moment = text.contains(':') ? given_time(text) : std::nullopt;  // a day is no reading's time
  if (!moment) return std::nullopt;
  return std::chrono::duration<double>(std::chrono::floor<std::chrono::seconds>(moment->time_since_epoch())).count();
}

std::vector<MeterReading> with_supplies_added(std::vector<MeterReading> readings) {
  std::vector<MeterReading> all;
  std::vector<MeterReading> sums;
  for (auto& one : readings) {
    if (!one.part) {
      all.push_back(std::move(one));
      continue;
    }
    const auto sum = std::ranges::find(sums, one.quantity, &MeterReading::quantity);
    if (sum == sums.end()) {
      one.part = false;
      sums.push_back(std::move(one));
    } else {
      add_part(*sum, one);
    }
  }
  for (auto& sum : sums) {
    const bool stated = std::ranges::find(all, sum.quantity, &MeterReading::quantity) != all.end();
    if (!stated) all.push_back(std::move(sum));
  }
  return all;
}

std::vector<MeterReading> redfish_readings(const json& resource, const std::string& path) {
  std::vector<MeterReading> readings;
  if (member(resource, "DetectorState") != nullptr) return leak_readings(resource, path);
  if (const auto property = property_of_sensor(resource)) {
    const json* value = member(resource, "Reading");
    readings.push_back(reading_of(value == nullptr ? json() : *value, resource, *property, path));
    return readings;
  }
  if (const json* controls = member(resource, "PowerControl"); controls != nullptr && controls->is_array())
    return {whole_power(*controls, path)};
  const bool of_supply =
      member(resource, "InputPowerWatts") != nullptr || member(resource, "OutputPowerWatts") != nullptr;
  for (const auto& property : kProperties) {
    const json* found = member(resource, property.name);
    if (found == nullptr) continue;
    const json* value = found->is_object() ? member(*found, "Reading") : found;
    MeterReading one = reading_of(value == nullptr ? json() : *value, *found, property, path);
    one.absent = one.absent || is_off(resource);
    one.part = of_supply;
    readings.push_back(std::move(one));
    // The excerpt of a power sensor has these two next to its reading.
    if (property.quantity != Quantity::power || !found->is_object()) continue;
    if (const json* factor = member(*found, "PowerFactor"); is_number(factor))
      readings.push_back(reading_of(*factor, json(), {"PowerFactor", Quantity::power_factor, 1}, path));
    if (const json* apparent = member(*found, "ApparentVA"); is_number(apparent))
      readings.push_back(reading_of(*apparent, json(), {"ApparentVA", Quantity::apparent_power, 1}, path));
  }
  if (readings.empty())
    throw MeterFault(fmt::format("{} has none of the known properties, such as PowerWatts or HeatRemovedkW", path));
  return readings;
}

}  // namespace assay::meters
