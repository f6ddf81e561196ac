// step_watch: cuts the readings at the marks of the load and evaluates each part.
#include "probes/power/step_watch.h"

#include <fmt/format.h>

namespace assay::power {
namespace {

/// The mean of the readings whose whole interval is between two times, if any.
std::optional<double> mean_within(std::span<const TimedValue> power, double begin_s, double end_s, double interval_s) {
  double sum = 0;
  int count = 0;
  for (const auto& one : power) {
    if (one.at_s - interval_s < begin_s || one.at_s > end_s) continue;
    sum += one.value;
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

StepsShown steps_shown(std::span<const TimedValue> power, const SwitchTimes& switched, double first_s, double end_s,
                       double interval_s) {
  StepsShown shown;
  for (std::size_t i = 0; i < switched.up.size(); ++i) {
    const StepSeen step{.at_s = switched.up[i],
                        .until_s = i < switched.down.size() ? switched.down[i] : end_s,
                        .before_s = i == 0 ? first_s : switched.down.at(i - 1),
                        .interval_s = interval_s,
                        .averaging_s = interval_s};
    auto one = step_response(power, step);
    if (!one) {
      shown.unseen = fmt::format("step {} of {}: {}", i + 1, switched.up.size(), one.error());
      shown.steps.clear();
      return shown;
    }
    shown.steps.push_back(*one);
  }
  if (shown.steps.empty()) shown.unseen = "the load was never raised";
  return shown;
}

std::vector<double> swings(std::span<const TimedValue> power, const SwitchTimes& switched, double interval_s) {
  std::vector<double> all;
  for (std::size_t i = 0; i + 1 < switched.up.size() && i < switched.down.size(); ++i) {
    const auto high = mean_within(power, switched.up[i], switched.down[i], interval_s);
    const auto low = mean_within(power, switched.down[i], switched.up[i + 1], interval_s);
    if (high && low) all.push_back(*high - *low);
  }
  return all;
}

}  // namespace assay::power
