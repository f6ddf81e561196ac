// memory_curve: points by rising rate, as a curve over sizes is drawn.
#include "reports/figures/memory_curve.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "probes/core/statistics.h"
#include "reports/figures/curve.h"

namespace assay::figures {
namespace {

/// Samples at one delay, and the median latency of each attempt.
struct AtDelay {
  std::vector<double> latencies, rates, medians;
};

/// What the records of one step have.
struct Loaded {
  std::map<std::int64_t, AtDelay> by_delay;
  std::vector<double> idle;

  void add(const Record& record) {
    const auto append = [](std::vector<double>& all, const std::vector<double>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    for (const auto& one : record.measurements) {
      if (one.samples.empty()) continue;
      if (one.metric == "idle_latency") append(idle, one.samples);
      const auto at = one.at.find("delay_ns");
      const auto* delay = at == one.at.end() ? nullptr : std::get_if<std::int64_t>(&at->second);
      if (delay == nullptr) continue;
      AtDelay& point = by_delay[*delay];
      if (one.metric == "rate") append(point.rates, one.samples);
      if (one.metric != "latency") continue;
      append(point.latencies, one.samples);
      point.medians.push_back(median(one.samples));
    }
  }
};

std::vector<CurvePoint> loaded_points(const Loaded& loaded) {
  std::vector<CurvePoint> points;
  for (const auto& [delay, at] : loaded.by_delay) {
    if (at.latencies.empty() || at.rates.empty()) continue;
    const double rate = median(at.rates);
    if (!(rate > 0)) continue;
    points.push_back({.x = rate,
                      .label = for_people(rate, "B/s"),
                      .subjects = at.medians.size(),
                      .low = std::ranges::min(at.medians),
                      .high = std::ranges::max(at.medians),
                      .value = median(at.latencies),
                      .interval = {},
                      .limit = {},
                      .acceptance = {},
                      .passes = true});
  }
  std::ranges::stable_sort(points, {}, &CurvePoint::x);
  return points;
}

Chart loaded_chart(const plan::Plan& plan, const std::string& place, const Loaded& loaded) {
  Curve curve;
  curve.points = loaded_points(loaded);
  if (curve.points.size() < 2 || curve.points.front().x == curve.points.back().x) return {};
  curve.title = "Latency of memory under load on " + place;
  curve.description = fmt::format("{} points, from {} at {} to {} at {}.", curve.points.size(),
                                  for_people(*curve.points.front().value, "s"), curve.points.front().label,
                                  for_people(*curve.points.back().value, "s"), curve.points.back().label);
  curve.x_name = "rate of the other cores (logarithmic)";
  curve.y_name = "latency of one load";
  curve.unit = "s";
  if (!loaded.idle.empty()) {
    const double idle = median(loaded.idle);
    curve.lines.push_back({.value = idle, .words = "idle " + for_people(idle, "s"), .css_class = "reference"});
  }
  return {.svg = curve_svg(curve),
          .caption = fmt::format("{}A dot for each delay of the injectors, medians of all samples; band: medians of "
                                 "single attempts; dotted: the latency without load. The knee is not judged. ",
                                 kind_words(plan))};
}

}  // namespace

std::vector<Chart> memory_curves(const plan::Plan& plan, const plan::Requirement& requirement,
                                 const std::vector<const judge::Result*>& results,
                                 const std::map<std::string, std::vector<Record>>& records) {
  if (requirement.probe != "host_loaded_latency" || !is_first_of_measurement(plan, requirement)) return {};
  std::vector<Chart> charts;
  for (const auto& step : steps_of(results)) {
    const auto found = records.find(step);
    if (found == records.end() || found->second.empty() || charts.size() == kMostMemoryCurves) continue;
    Loaded loaded;
    for (const auto& record : found->second) loaded.add(record);
    Chart chart = loaded_chart(plan, place_of(plan, step, found->second.front()), loaded);
    if (!chart.svg.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace assay::figures
