// site_readings: turns the series of the watches into single readings with their times, by meter and outlet.
#include "orchestrator/judge/metering/site_readings.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::judge {
namespace {

const Value* coordinate_in(const Values& at, const char* name) {
  const auto found = at.find(name);
  return found == at.end() ? nullptr : &found->second;
}

std::optional<double> number_in_at(const Values& at, const char* name) {
  const Value* value = coordinate_in(at, name);
  return value == nullptr ? std::nullopt : number_in(*value);
}

/// What `record` says of a meter by this name.
const Value* said_of(const Record& record, std::string_view name, const std::string& meter) {
  const Subject subject{.kind = "meter", .id = meter};
  const auto found = std::ranges::find_if(
      record.conditions, [&](const Condition& one) { return one.name == name && one.subject == subject; });
  return found == record.conditions.end() ? nullptr : &found->value;
}

void take_power(const Record& record, const Measurement& measured,
                std::map<MeterPoint, std::vector<meters::MeterReading>>& all) {
  const Value* name = coordinate_in(measured.at, "meter");
  const auto* meter = name == nullptr ? nullptr : std::get_if<std::string>(name);
  const auto begin_s = number_in_at(measured.at, "begin_s"), interval_s = number_in_at(measured.at, "interval_s");
  if (meter == nullptr || !begin_s || !interval_s || !(*interval_s > 0)) return;
  const int outlet = static_cast<int>(std::clamp(number_in_at(measured.at, "outlet").value_or(0), 0.0, 1e6));
  const Value* averaging = said_of(record, "averaging_s", *meter);
  const Value* accuracy = said_of(record, "accuracy_declared", *meter);
  meters::MeterReading one{
      .quantity = Quantity::power, .outlet = outlet, .instrument = *meter, .origin = meters::Origin::measured};
  if (averaging != nullptr) one.averaging_s = number_in(*averaging);
  if (accuracy != nullptr) one.accuracy = number_in(*accuracy);
  auto& readings = all[{*meter, outlet}];
  for (std::size_t i = 0; i < measured.samples.size(); ++i) {
    one.value = measured.samples[i];
    one.taken_s = *begin_s + (static_cast<double>(i) + 0.5) * *interval_s;
    readings.push_back(one);
  }
}

}  // namespace

std::map<MeterPoint, std::vector<meters::MeterReading>> power_readings(const std::map<int, Record>& watches) {
  std::map<MeterPoint, std::vector<meters::MeterReading>> all;
  for (const auto& [number, record] : watches) {
    for (const auto& measured : record.measurements)
      if (measured.metric == "power") take_power(record, measured, all);
  }
  for (auto& [point, readings] : all) std::ranges::stable_sort(readings, {}, &meters::MeterReading::taken_s);
  return all;
}

std::optional<std::string> doubt_of_meter(const std::map<int, Record>& watches, const std::string& meter) {
  bool known = false;
  for (const auto& [number, record] : watches) {
    const Value* value = said_of(record, "meter_doubts", meter);
    if (value == nullptr) continue;
    known = true;
    const auto* text = std::get_if<std::string>(value);
    if (text == nullptr || *text != "none")
      return fmt::format("The meter {} is in doubt: {}.", meter, text == nullptr ? std::string("no text") : *text);
  }
  return known ? std::nullopt : std::optional(fmt::format("Nothing is known of the meter {}.", meter));
}

std::optional<HeldLoad> held_load(const Record& load, double begin_s, double end_s) {
  const Value* shape = coordinate_in(load.start.parameters, "shape");
  const auto* word = shape == nullptr ? nullptr : std::get_if<std::string>(shape);
  const auto hold_s = number_in_at(load.start.parameters, "hold"), ramp_s = number_in_at(load.start.parameters, "ramp");
  const bool dated =
      std::ranges::any_of(load.conditions, [](const Condition& one) { return one.name == "hold_begin_s"; });
  if (word == nullptr || !hold_s || !ramp_s || !dated) return std::nullopt;
  return HeldLoad{.shape = *word, .hold_s = *hold_s, .ramp_s = *ramp_s, .begin_s = begin_s, .end_s = end_s};
}

}  // namespace assay::judge
