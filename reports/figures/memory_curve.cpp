// memory_curve: points by rising rate, as a curve over sizes is drawn; equal matrices of distances share a table.
#include "reports/figures/record_charts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "probes/core/statistics.h"
#include "reports/figures/curve.h"
#include "reports/figures/html.h"

namespace assay::figures {
namespace {

/// Samples at one delay, and the median latency of each attempt.
struct AtDelay {
  std::vector<double> latencies, rates, medians;
};

/// The samples of one step.
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

/// Distances by the node they are from, and the one they are to.
using Distances = std::map<std::int64_t, std::map<std::int64_t, double>>;

Distances distances_in(const Record& record) {
  Distances distances;
  for (const auto& one : record.measurements) {
    const auto from = one.at.find("from"), to = one.at.find("to");
    if (one.metric != "numa_distance" || one.samples.empty() || from == one.at.end() || to == one.at.end()) continue;
    const auto *row = std::get_if<std::int64_t>(&from->second), *column = std::get_if<std::int64_t>(&to->second);
    if (row != nullptr && column != nullptr) distances[*row][*column] = one.samples.front();
  }
  return distances;
}

std::string table_of(const Distances& distances, const std::vector<std::string>& hosts) {
  std::map<std::int64_t, double> columns;
  for (const auto& [from, row] : distances) columns.insert(row.begin(), row.end());
  std::vector<std::string> heads = {"From node"}, rows;
  for (const auto& [to, ignored] : columns) heads.push_back(fmt::format("to {}", to));
  for (const auto& [from, row] : distances) {
    std::vector<std::string> cells = {fmt::format("{}", from)};
    for (const auto& [to, ignored] : columns) {
      const auto found = row.find(to);
      cells.push_back(found == row.end() ? "unknown" : for_people(found->second, "1"));
    }
    rows.push_back(figures::row(cells));
  }
  constexpr std::size_t kNamed = 3;
  std::string named;
  for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) named += (i == 0 ? "" : ", ") + hosts[i];
  if (hosts.size() > kNamed) named += fmt::format(" and {} more", hosts.size() - kNamed);
  return table("distances", "Distances between memory nodes by the firmware, 10 is local: " + named, heads, rows);
}

}  // namespace

std::string distance_tables(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                            const RecordsOf& records) {
  if (requirement.probe != "health_memory" || !is_first_of_measurement(plan, requirement)) return "";
  std::map<Distances, std::vector<std::string>> hosts;
  for (const auto& step : steps_of(results)) {
    const auto found = records.find(step);
    if (found == records.end() || found->second.empty()) continue;
    auto distances = distances_in(found->second.front());
    if (distances.size() > 1) hosts[std::move(distances)].push_back(place_of(plan, step, found->second.front()));
  }
  std::string html;
  std::size_t drawn = 0;
  for (const auto& [distances, names] : hosts) {
    if (drawn++ < kMostMemoryCurves) html += table_of(distances, names);
  }
  return html;
}

std::vector<Chart> memory_curves(const plan::Plan& plan, const plan::Requirement& requirement,
                                 const ResultList& results, const RecordsOf& records) {
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
