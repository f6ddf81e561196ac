// strip: object identifiers and scales of strips by model, after the makers' MIBs as two or more independent projects
// read them.
#include "probes/meters/strip.h"

#include <cmath>

#include <fmt/format.h>

namespace assay::meters {
namespace {

constexpr const char* kApc = "1.3.6.1.4.1.318.1.1.26";
constexpr const char* kRaritan = "1.3.6.1.4.1.13742.6";
constexpr double kTenWatts = 10;  // 0.01 kW
constexpr double kTenthKilowattHour_j = 3.6e5;
constexpr double kWattHour_j = 3600;
// SensorTypeEnumeration of PDU2-MIB.
constexpr int kRmsCurrent = 1, kRmsVoltage = 4, kActivePower = 5, kApparentPower = 6, kPowerFactor = 7,
              kActiveEnergy = 8, kFrequency = 23;

void add_apc(const Meter& meter, std::vector<StripObject>& all) {
  const auto add = [&](const char* rest, Quantity quantity, double scale, int outlet = 0) {
    all.push_back({.oid = fmt::format("{}.{}.{}", kApc, rest, outlet == 0 ? 1 : outlet),
                   .quantity = quantity,
                   .outlet = outlet,
                   .scale = scale});
  };
  add("4.3.1.5", Quantity::power, kTenWatts);
  add("4.3.1.16", Quantity::apparent_power, kTenWatts);
  add("4.3.1.17", Quantity::power_factor, 0.01);
  add("4.3.1.9", Quantity::energy, kTenthKilowattHour_j);
  add("6.3.1.5", Quantity::current, 0.1);
  // A strip of one phase answers that it has no such instance.
  for (const auto& [phase, quantity] : {std::pair(2, Quantity::current_l2), std::pair(3, Quantity::current_l3)})
    all.push_back({.oid = fmt::format("{}.6.3.1.5.{}", kApc, phase), .quantity = quantity, .outlet = 0, .scale = 0.1});
  add("6.3.1.6", Quantity::voltage, 1);
  for (const auto& [outlet, node] : meter.outlets) add("9.4.3.1.7", Quantity::power, 1, outlet);
}

void add_raritan(const Meter& meter, std::vector<StripObject>& all) {
  const auto add = [&](int outlet, int type, Quantity quantity, double scale) {
    const char* values = outlet == 0 ? "5.2.3.1" : "5.4.3.1";
    const char* digits = outlet == 0 ? "3.3.4.1.7" : "3.5.4.1.7";
    const int place = outlet == 0 ? 1 : outlet;
    all.push_back({.oid = fmt::format("{}.{}.4.1.{}.{}", kRaritan, values, place, type),
                   .quantity = quantity,
                   .outlet = outlet,
                   .scale = scale,
                   .digits_oid = fmt::format("{}.{}.1.{}.{}", kRaritan, digits, place, type),
                   .other_oid = fmt::format("{}.{}.6.1.{}.{}", kRaritan, values, place, type)});
  };
  add(0, kActivePower, Quantity::power, 1);
  add(0, kApparentPower, Quantity::apparent_power, 1);
  add(0, kPowerFactor, Quantity::power_factor, 1);
  add(0, kActiveEnergy, Quantity::energy, kWattHour_j);
  add(0, kRmsCurrent, Quantity::current, 1);
  add(0, kRmsVoltage, Quantity::voltage, 1);
  add(0, kFrequency, Quantity::frequency, 1);
  for (const auto& [outlet, node] : meter.outlets) add(outlet, kActivePower, Quantity::power, 1);
}

}  // namespace

std::vector<StripObject> strip_objects(const Meter& meter) {
  std::vector<StripObject> all;
  if (meter.model == MeterModel::apc_rpdu2) add_apc(meter, all);
  if (meter.model == MeterModel::raritan_pdu2) add_raritan(meter, all);
  return all;
}

MeterReading strip_reading(const StripObject& object, std::optional<double> number, double digits) {
  constexpr double kMostDigits = 6;
  const bool known = number && *number >= 0 && digits >= 0 && digits <= kMostDigits;  // -1 is "not supported" of both
  const double step = known ? object.scale * std::pow(10.0, -digits) : 0;
  return {.quantity = object.quantity,
          .outlet = object.outlet,
          .value = known ? *number * step : 0,
          .quantum = step,
          .instrument = fmt::format("snmp {}", object.oid),
          .origin = Origin::measured,
          .absent = !known};
}

}  // namespace assay::meters
