// facility: rules for racks, cooling and steps, from readings of meters. Tests hold the simulated plant to them.
#pragma once

#include <algorithm>
#include <cmath>
#include <expected>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "probes/meters/agreement.h"
#include "probes/meters/doubts.h"

namespace assay::meters {

/// A finding of one rule, and the figures as a sentence.
struct Judged {
  Finding finding = Finding::undecided;  ///< agrees: the rule is met; differs: it is not
  std::string figures;
};

inline constexpr double kSteady_s = 600;
inline constexpr double kPowerSlope = 0.005;      // of the mean, over the ten minutes
inline constexpr double kTemperatureSlope = 0.1;  // K a minute
inline constexpr double kFullLoad = 0.95;         // of the budget
inline constexpr double kFastEnough = 5;          // averaging windows in a rise
inline constexpr double kYear_h = 8760;
inline constexpr double kEdge = 0.1;  // of a step, where its rise begins and ends

/// The slope a second of the last ten minutes, by least squares; nothing with less than nine tenths of them.
inline std::optional<double> slope_of_end(std::span<const MeterReading> readings) {
  std::vector<const MeterReading*> last;
  for (const auto& one : readings) {
    if (!one.absent && one.taken_s > readings.back().taken_s - kSteady_s) last.push_back(&one);
  }
  constexpr std::size_t kFewestOfRise = 10;
  if (last.size() < kFewestOfRise || last.back()->taken_s - last.front()->taken_s < 0.9 * kSteady_s)
    return std::nullopt;
  double mean_t = 0, mean_y = 0;
  for (const auto* one : last) {
    mean_t += one->taken_s / static_cast<double>(last.size());
    mean_y += one->value / static_cast<double>(last.size());
  }
  double tt = 0, ty = 0;
  for (const auto* one : last) {
    tt += (one->taken_s - mean_t) * (one->taken_s - mean_t);
    ty += (one->taken_s - mean_t) * (one->value - mean_y);
  }
  return ty / tt;
}

inline double mean_of(std::span<const MeterReading> readings) {
  return std::accumulate(readings.begin(), readings.end(), 0.0,
                         [](double sum, const MeterReading& one) { return sum + one.value; }) /
         static_cast<double>(readings.size());
}

inline Judged of(bool met, std::string figures) {
  return {.finding = met ? Finding::agrees : Finding::differs, .figures = std::move(figures)};
}

/// Whether a load held steady for the last ten minutes of `power` and of each series in `temperatures`: the slope of
/// power over ten minutes is at most 0.5 % of its mean, and that of each temperature at most 0.1 K a minute. undecided
/// with less than ten minutes. The limits are proposals of this project, not of a document.
inline Judged steady(std::span<const MeterReading> power,
                     const std::map<std::string, std::vector<MeterReading>>& temperatures) {
  const auto slope = slope_of_end(power);
  if (!slope) return {.figures = "less than ten minutes of power"};
  const double mean_w = mean_of(power.last(std::min<std::size_t>(power.size(), static_cast<std::size_t>(kSteady_s))));
  const double change = std::abs(*slope) * kSteady_s / mean_w;
  if (change > kPowerSlope)
    return of(false, fmt::format("power changed by {:.2f} % in ten minutes, at most {:.1f} % is steady", 100 * change,
                                 100 * kPowerSlope));
  for (const auto& [name, readings] : temperatures) {
    const auto rise = readings.empty() ? std::nullopt : slope_of_end(readings);
    if (!rise) return {.figures = fmt::format("less than ten minutes of the temperature {}", name)};
    if (std::abs(*rise) * 60 > kTemperatureSlope)
      return of(false, fmt::format("temperature {} changed by {:.2f} K a minute, at most {:.1f} is steady", name,
                                   std::abs(*rise) * 60, kTemperatureSlope));
  }
  return of(true, fmt::format("power changed by {:.2f} % in ten minutes", 100 * change));
}

/// Whether any unit was throttled for its temperature after the steady mark: `throttled_s` has the seconds of each.
/// undecided without a unit.
inline Judged unthrottled(const std::map<std::string, double>& throttled_s) {
  if (throttled_s.empty()) return {.figures = "no unit says whether it was throttled"};
  for (const auto& [unit, seconds] : throttled_s) {
    if (seconds > 0)
      return of(false, fmt::format("{} was throttled for {:.3g} s after the steady mark", unit, seconds));
  }
  return of(true, fmt::format("none of {} units was throttled", throttled_s.size()));
}

/// Whether all promised leak detectors are there and enabled. `enabled` has every detector that answered.
inline Judged leak_detectors(std::size_t promised, const std::map<std::string, bool>& enabled) {
  std::string off;
  for (const auto& [name, is_on] : enabled) {
    if (!is_on) off += (off.empty() ? "" : ", ") + name;
  }
  if (!off.empty()) return of(false, fmt::format("leak detectors not enabled: {}", off));
  return of(enabled.size() >= promised,
            fmt::format("{} of {} promised leak detectors answer", enabled.size(), promised));
}

/// Whether all feeds carry power: a rack fed by A and B draws from both. undecided with less than two feeds.
inline Judged feeds_alive(const std::map<std::string, std::vector<MeterReading>>& feeds) {
  if (feeds.size() < 2) return {.figures = fmt::format("{} feed is metered", feeds.size())};
  for (const auto& [name, readings] : feeds) {
    const auto carries = [](const MeterReading& one) { return !one.absent && one.value > 0; };
    const auto dead = static_cast<std::size_t>(std::ranges::count_if(readings, std::not_fn(carries)));
    if (readings.empty() || dead > 0)
      return of(false, fmt::format("feed {} carried no power in {} of {} readings", name, dead, readings.size()));
  }
  return of(true, fmt::format("all {} feeds carry power", feeds.size()));
}

/// Whether the power of `meter` stayed at most `budget_w` in every mean of one second, and reached at least 0.95 of it:
/// below that the load was not full and nothing is shown.
inline Judged budget(std::span<const MeterReading> meter, double budget_w) {
  if (auto doubts = doubts_of(meter, {.window_s = 1}); !doubts.empty()) return {.figures = text_of(doubts)};
  const double most_w = std::ranges::max(meter, {}, &MeterReading::value).value;
  if (most_w > budget_w) return of(false, fmt::format("{:.0f} W were drawn, the budget is {:.0f} W", most_w, budget_w));
  if (most_w < kFullLoad * budget_w)
    return {.figures = fmt::format("the load reached {:.1f} % of the budget, which shows nothing of the rest",
                                   100 * most_w / budget_w)};
  return of(true, fmt::format("{:.0f} W of {:.0f} W", most_w, budget_w));
}

/// (max - mean) / mean of the phase currents against `limit`.
inline Judged phase_balance(std::span<const double> currents_a, double limit) {
  if (currents_a.size() < 2) return {.figures = "fewer than two phases are metered"};
  const double mean_a =
      std::accumulate(currents_a.begin(), currents_a.end(), 0.0) / static_cast<double>(currents_a.size());
  if (mean_a <= 0) return {.figures = "no phase carries current"};
  const double imbalance = (std::ranges::max(currents_a) - mean_a) / mean_a;
  return of(imbalance <= limit, fmt::format("the fullest phase is {:.1f} % above the mean", 100 * imbalance));
}

/// The rise of a step of load from 10 to 90 %, in s. An error where the meter cannot see it: its averaging window must
/// be stated and at most a fifth of the rise.
inline std::expected<double, NamedDoubt> rise_time_s(std::span<const MeterReading> readings, double step_at_s) {
  if (readings.empty()) return std::unexpected(NamedDoubt{Doubt::absent, "no reading"});
  if (!readings.front().averaging_s)
    return std::unexpected(NamedDoubt{Doubt::slow, "its averaging window is not stated"});
  const auto settled = [&](double begin_s, double end_s) -> std::optional<double> {
    double sum = 0;
    int count = 0;
    for (const auto& one : readings) {
      if (one.absent || one.taken_s < begin_s || one.taken_s >= end_s) continue;
      sum += one.value;
      ++count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  };
  constexpr double kLevel = 10;  // seconds at either end that give the levels
  const auto low = settled(step_at_s - kLevel, step_at_s);
  const auto high = settled(readings.back().taken_s - kLevel, readings.back().taken_s + 1);
  if (!low || !high || *high <= *low) return std::unexpected(NamedDoubt{Doubt::gaps, "no step is seen"});
  const auto crossing = [&](double share) -> std::optional<double> {
    const double level = *low + share * (*high - *low);
    for (std::size_t i = 1; i < readings.size(); ++i) {
      const auto &before = readings[i - 1], &after = readings[i];
      if (after.taken_s < step_at_s || before.value > level || after.value < level) continue;
      const double part = after.value > before.value ? (level - before.value) / (after.value - before.value) : 1;
      return before.taken_s + part * (after.taken_s - before.taken_s);
    }
    return std::nullopt;
  };
  const auto begin_s = crossing(kEdge), end_s = crossing(1 - kEdge);
  if (!begin_s || !end_s) return std::unexpected(NamedDoubt{Doubt::gaps, "the step does not cross its own levels"});
  const double rise_s = *end_s - *begin_s;
  if (*readings.front().averaging_s > rise_s / kFastEnough)
    return std::unexpected(NamedDoubt{Doubt::slow, fmt::format("it averages over {:.3g} s, a fifth of the rise that it "
                                                               "shows is {:.3g} s",
                                                               *readings.front().averaging_s, rise_s / kFastEnough)});
  return rise_s;
}

/// PUE is an energy ratio over twelve months (ISO/IEC 30134-2): a claim from less is refused.
inline Judged pue_claim(double hours) {
  return of(hours >= kYear_h, fmt::format("{:.0f} hours: PUE is defined over twelve months; over less it is a power "
                                          "ratio at the load and weather of that time",
                                          hours));
}

}  // namespace assay::meters
