// doubts: one function for each check, of the readings alone; see doubts.h.
#include "probes/meters/doubts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include <fmt/format.h>

namespace assay::meters {
namespace {

constexpr double kMostStep = 0.02;  // a step of 2 % of the reading is half of the difference that agreement allows
constexpr double kMostAge_s = 60;   // a window of the published procedure is a minute
constexpr double kMostClockOffset_s = 300;  // beyond it the instrument's clock is wrong, and its times say nothing
constexpr double kLeastShare = 0.9;         // of the readings that were due
constexpr std::size_t kFewest = 5;          // readings before stillness says anything
constexpr double kLast16Bit = 65535;
constexpr double kHalf16Bit = 32768;
constexpr double kMostScaleError = 0.03;
constexpr double kMostHeatError = 0.10;
// Answers of instruments without a value: DCMI controllers answer 1023 (ten bits, all set) or all of 16 bits.
constexpr std::array kNoNumbers = {1023.0, kLast16Bit};

bool is_present(const MeterReading& one) { return !one.absent && std::isfinite(one.value); }

/// Only the codes for "no value". A supply that carries a running node draws power, so 0 W is none.
std::optional<NamedDoubt> absence(std::span<const MeterReading> readings) {
  const auto says_nothing = [](const MeterReading& one) {
    const bool of_power = one.quantity == Quantity::power || one.quantity == Quantity::voltage;
    return !is_present(one) || (of_power && one.value <= 0) ||
           (one.quantity == Quantity::power && one.value == kNoNumbers.front());
  };
  const auto empty = static_cast<std::size_t>(std::ranges::count_if(readings, says_nothing));
  if (empty < readings.size() || readings.empty()) {
    if (!readings.empty()) return std::nullopt;
    return NamedDoubt{Doubt::absent, "no reading"};
  }
  return NamedDoubt{Doubt::absent, fmt::format("{} readings, none of them above 0 or present", readings.size())};
}

std::optional<NamedDoubt> stillness(const std::vector<MeterReading>& present, const Expected& expected) {
  if (!expected.load_changed || present.size() < kFewest) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(present, {}, &MeterReading::value);
  if (most.value - least.value > most.quantum) return std::nullopt;
  return NamedDoubt{Doubt::stuck,
                    fmt::format("{:.6g} in {} readings while the load changed", most.value, present.size())};
}

/// The instrument's own times: old by more than a window where its clock agrees with ours, or constant if it does not.
std::optional<NamedDoubt> staleness(const std::vector<MeterReading>& present) {
  std::vector<const MeterReading*> stated;
  for (const auto& one : present) {
    if (one.stated_s) stated.push_back(&one);
  }
  if (stated.size() < kFewest) return std::nullopt;
  const auto age = [](const MeterReading* one) { return one->taken_s - *one->stated_s; };
  const double spread_s = stated.back()->taken_s - stated.front()->taken_s;
  if (spread_s > kMostAge_s && *stated.back()->stated_s <= *stated.front()->stated_s)
    return NamedDoubt{Doubt::stale, fmt::format("its own time did not change for {:.0f} s", spread_s)};
  const double newest = std::ranges::min(stated | std::views::transform(age));
  const double oldest = std::ranges::max(stated | std::views::transform(age));
  // A clock that is wrong by hours is wrong for all readings alike: then only how much ages grow is known.
  const double shown = std::abs(newest) > kMostClockOffset_s ? oldest - newest : oldest;
  if (shown <= kMostAge_s) return std::nullopt;
  return NamedDoubt{Doubt::stale,
                    fmt::format("a reading was {:.0f} s old, at most {:.0f} s are allowed", shown, kMostAge_s)};
}

/// At the end of 16 bits, or a fall by more than half of them from one reading to the next, which no averaged load
/// does.
std::optional<NamedDoubt> wrap(const std::vector<MeterReading>& present, const Expected& expected) {
  if (!expected.integers_are_16_bit) return std::nullopt;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const double value = present[i].value;
    if (value >= kLast16Bit) return NamedDoubt{Doubt::wrapped, "the reading is at the end of 16 bits, 65,535 W"};
    if (i > 0 && present[i - 1].value - value > kHalf16Bit)
      return NamedDoubt{Doubt::wrapped,
                        fmt::format("it fell from {:.0f} to {:.0f} W at once", present[i - 1].value, value)};
  }
  return std::nullopt;
}

std::optional<NamedDoubt> coarseness(const std::vector<MeterReading>& present) {
  for (const auto& one : present) {
    if (one.quantity == Quantity::power && one.quantum > kMostStep * std::abs(one.value))
      return NamedDoubt{Doubt::coarse, fmt::format("its least step of {:.4g} is {:.1f} % of {:.6g}", one.quantum,
                                                   100 * one.quantum / std::abs(one.value), one.value)};
  }
  return std::nullopt;
}

/// Said to be computed; or a number that jumps between few values while the load moves is left to agreement, which sees
/// it against another instrument.
std::optional<NamedDoubt> synthesis(const std::vector<MeterReading>& present) {
  const auto computed = std::ranges::find(present, Origin::synthesised, &MeterReading::origin);
  if (computed == present.end()) return std::nullopt;
  return NamedDoubt{Doubt::synthesised, fmt::format("{} says that it computes the number", computed->instrument)};
}

std::optional<NamedDoubt> slowness(const std::vector<MeterReading>& present, const Expected& expected) {
  for (const auto& one : present) {
    if (one.averaging_s && *one.averaging_s > expected.window_s)
      return NamedDoubt{Doubt::slow, fmt::format("it averages over {:.0f} s, the window is {:.0f} s", *one.averaging_s,
                                                 expected.window_s)};
  }
  return std::nullopt;
}

std::optional<NamedDoubt> gappiness(std::span<const MeterReading> readings, const std::vector<MeterReading>& present,
                                    const Expected& expected) {
  if (readings.size() < 2) return std::nullopt;
  const double due = (readings.back().taken_s - readings.front().taken_s) / expected.interval_s + 1;
  if (static_cast<double>(present.size()) >= kLeastShare * due) return std::nullopt;
  return NamedDoubt{Doubt::gaps, fmt::format("{} of {:.0f} readings that were due", present.size(), due)};
}

}  // namespace

std::vector<NamedDoubt> doubts_of(std::span<const MeterReading> readings, const Expected& expected) {
  std::vector<NamedDoubt> found;
  if (auto doubt = absence(readings)) return {std::move(*doubt)};  // the others need numbers
  std::vector<MeterReading> present;
  std::ranges::copy_if(readings, std::back_inserter(present), is_present);
  const auto add = [&](std::optional<NamedDoubt> doubt) {
    if (doubt) found.push_back(std::move(*doubt));
  };
  add(stillness(present, expected));
  add(staleness(present));
  add(wrap(present, expected));
  add(coarseness(present));
  add(synthesis(present));
  add(slowness(present, expected));
  add(gappiness(readings, present, expected));
  return found;
}

std::optional<NamedDoubt> scale_doubt(double power_w, double voltage_v, double current_a, double power_factor) {
  const double product_w = voltage_v * current_a * power_factor;
  if (product_w <= 0) return std::nullopt;  // no load on it: nothing to compare
  const double ratio = power_w / product_w;
  if (std::abs(ratio - 1) <= kMostScaleError) return std::nullopt;
  return NamedDoubt{Doubt::mis_scaled,
                    fmt::format("power is {:.6g} W, and voltage x current x power factor {:.6g} W: {:.3g} times",
                                power_w, product_w, ratio)};
}

std::optional<NamedDoubt> heat_doubt(double stated_w, double flow_m3_s, double rise_k) {
  const double carried_w = heat_of_water_w(flow_m3_s, rise_k);
  if (stated_w > 0 && carried_w < -kMostHeatError * stated_w)
    return NamedDoubt{Doubt::mis_scaled, fmt::format("the coolant comes back {:.3g} K colder than it goes: supply and "
                                                     "return are exchanged, or nothing is cooled",
                                                     -rise_k)};
  if (carried_w <= 0) return std::nullopt;  // idle: a difference of two sensors
  const double ratio = stated_w / carried_w;
  if (std::abs(ratio - 1) <= kMostHeatError) return std::nullopt;
  return NamedDoubt{Doubt::mis_scaled,
                    fmt::format("heat is {:.6g} W, and flow x rise of water carry {:.6g} W: {:+.1f} %", stated_w,
                                carried_w, 100 * (ratio - 1))};
}

std::string text_of(std::span<const NamedDoubt> doubts) {
  std::string text;
  for (const auto& [doubt, figures] : doubts) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", doubt, figures);
  }
  return text;
}

}  // namespace assay::meters
