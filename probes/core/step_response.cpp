// step_response: two levels by medians, and the crossings between them.
#include "probes/core/step_response.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr double kFirst = 0.1, kLast = 0.9;  // of the way: where a rise begins and ends
constexpr double kSettled = 0.05;            // of the way
constexpr double kDeviations = 3;            // beyond which a reading is no scatter
constexpr double kStandsOut = 10;            // deviations in the way of a step
constexpr std::size_t kFewest = 3;           // readings at a level
constexpr double kScaledMad = 1.4826;        // makes the median deviation estimate sigma (Iglewicz & Hoaglin 1993)

using Refusal = std::unexpected<std::string>;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// A level and the scatter of its readings.
struct Level {
  double value = 0, deviation = 0;
};

std::optional<Level> level_of(std::span<const TimedValue> readings, double begin_s, double end_s) {
  std::vector<double> values;
  for (const auto& one : readings)
    if (one.at_s >= begin_s && one.at_s < end_s) values.push_back(one.value);
  if (values.size() < kFewest) return std::nullopt;
  Level level{.value = median_of(values)};
  for (auto& value : values) value = std::abs(value - level.value);
  level.deviation = kScaledMad * median_of(std::move(values));
  return level;
}

/// Where the way crosses `share` between the readings `at` - 1 and `at`.
double crossing_s(std::span<const TimedValue> readings, std::size_t at, double level) {
  const auto &before = readings[at - 1], &after = readings[at];
  return before.at_s + (level - before.value) / (after.value - before.value) * (after.at_s - before.at_s);
}

/// Only the readings of the step, as shares of its height: 0 before it, 1 after it.
std::vector<TimedValue> shares_of(std::span<const TimedValue> readings, const StepSeen& step, double low, double way) {
  std::vector<TimedValue> shares;
  const double half_s = (step.at_s - step.before_s) / 2;
  for (const auto& one : readings)
    if (one.at_s >= step.at_s - half_s && one.at_s < step.until_s - step.clock_s)
      shares.push_back({.at_s = one.at_s, .value = (one.value - low) / way});
  return shares;
}

/// From 10 to 90 %: the first crossing of 90 %, and the last of 10 % before it.
std::optional<double> rise_of(const std::vector<TimedValue>& shares) {
  std::size_t last = 1;
  while (last < shares.size() && shares[last].value < kLast) ++last;
  if (last >= shares.size()) return std::nullopt;
  std::size_t first = last;
  while (first > 0 && shares[first - 1].value > kFirst) --first;
  if (first == 0) return std::nullopt;
  return crossing_s(shares, last, kLast) - crossing_s(shares, first, kFirst);
}

std::optional<std::string> too_slow(const StepSeen& step, double rise_s) {
  if (!step.averaging_s) return "its averaging window is not stated";
  if (*step.averaging_s > kSeenShare * rise_s)
    return fmt::format("it averages over {:.3g} s, and a fifth of the rise that it shows is {:.3g} s",
                       *step.averaging_s, kSeenShare * rise_s);
  if (step.interval_s > kSeenShare * rise_s)
    return fmt::format("it is read every {:.3g} s, and a fifth of the rise that it shows is {:.3g} s", step.interval_s,
                       kSeenShare * rise_s);
  return std::nullopt;
}

}  // namespace

std::expected<StepResponse, std::string> step_response(std::span<const TimedValue> readings, const StepSeen& step) {
  if (!step.averaging_s) return Refusal(*too_slow(step, 0));
  const auto low = level_of(readings, step.before_s + (step.at_s - step.before_s) / 2, step.at_s - step.clock_s);
  const auto high = level_of(readings, step.at_s + (step.until_s - step.at_s) / 2, step.until_s - step.clock_s);
  if (!low || !high)
    return Refusal(fmt::format("it has less than {} readings {} the step", kFewest, low ? "after" : "before"));
  StepResponse seen{.low = low->value, .high = high->value, .deviation = high->deviation};
  const double way = high->value - low->value;
  if (way == 0 || std::abs(way) < kStandsOut * std::max(low->deviation, high->deviation))
    return Refusal(
        fmt::format("its step from {:.4g} to {:.4g} does not stand out of its scatter", seen.low, seen.high));
  const auto shares = shares_of(readings, step, low->value, way);
  const auto rise_s = rise_of(shares);
  if (!rise_s) return Refusal("its readings do not cross 10 and 90 % of the step");
  if (auto slow = too_slow(step, *rise_s)) return Refusal(std::move(*slow));
  seen.rise_s = *rise_s;
  seen.slope = (kLast - kFirst) * way / *rise_s;
  const double scatter = kDeviations * high->deviation / std::abs(way);
  const double band = std::max(kSettled, scatter);
  double most = 0, settled_s = step.at_s;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].at_s < step.at_s - step.clock_s) continue;
    most = std::max(most, shares[i].value - 1);
    const bool outside = std::abs(shares[i].value - 1) > band;
    if (!outside || i + 1 >= shares.size()) continue;
    // Settled where the line to the next reading enters the band.
    const double edge = shares[i].value > 1 ? 1 + band : 1 - band;
    const bool enters = std::abs(shares[i + 1].value - 1) <= band;
    settled_s = enters ? crossing_s(shares, i + 1, edge) : shares[i + 1].at_s;
  }
  seen.overshoot = most > scatter ? most : 0;
  seen.settling_s = std::max(settled_s - step.at_s, 0.0);
  return seen;
}

}  // namespace assay
