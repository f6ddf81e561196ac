// fault_chart: counts of the records, summed over attempts and subjects.
#include "reports/figures/record_charts.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reports/figures/heat.h"

namespace assay::figures {
namespace {

/// Whether both forbid a fault of the same measurement.
bool allows_none(const plan::Requirement& one, const plan::Requirement& like) {
  return one.at_every && one.limit.at_most == 0.0 && one.probe == like.probe && one.scope == like.scope &&
         one.parameters == like.parameters;
}

/// The metrics that are counted together, in the order of the profile; none if another requirement is the first.
std::vector<std::string> columns_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  std::vector<std::string> metrics;
  for (const auto& one : plan.profile.requirements) {
    if (!allows_none(one, requirement)) continue;
    if (metrics.empty() && one.id != requirement.id) return {};
    if (std::ranges::find(metrics, one.metric) == metrics.end()) metrics.push_back(one.metric);
  }
  return metrics;
}

/// Sums by place and metric; places in the order of the records.
struct Counts {
  std::string coordinate;
  std::vector<std::string> places;
  std::map<std::pair<std::string, std::string>, double> sums;
  bool clear = true;  ///< every measurement has this one coordinate, as text
};

void add(Counts& counts, const Measurement& measured) {
  const auto* place = measured.at.size() == 1 ? std::get_if<std::string>(&measured.at.begin()->second) : nullptr;
  if (place == nullptr || (!counts.coordinate.empty() && counts.coordinate != measured.at.begin()->first)) {
    counts.clear = false;
    return;
  }
  counts.coordinate = measured.at.begin()->first;
  if (std::ranges::find(counts.places, *place) == counts.places.end()) counts.places.push_back(*place);
  for (const double sample : measured.samples) counts.sums[{*place, measured.metric}] += sample;
}

}  // namespace

Chart fault_chart(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                  const RecordsOf& records) {
  if (!allows_none(requirement, requirement)) return {};
  const auto metrics = columns_of(plan, requirement);
  std::set<std::string> steps;
  for (const judge::Result* result : results) steps.insert(result->step);
  Counts counts;
  for (const auto& step : steps) {
    const auto found = records.find(step);
    if (found == records.end()) continue;
    for (const auto& record : found->second) {
      for (const auto& measured : record.measurements) {
        if (std::ranges::find(metrics, measured.metric) != metrics.end()) add(counts, measured);
      }
    }
  }
  if (metrics.size() < 2 || counts.places.size() < 2 || counts.places.size() > kMostHeatPlaces || !counts.clear)
    return {};
  HeatMap map{.title = fmt::format("Faults of {} by {} and class", requirement.probe, counts.coordinate),
              .rows = {.name = counts.coordinate, .labels = counts.places},
              .columns = {.name = "fault", .labels = metrics},
              .margins = false};
  std::size_t wrong = 0;
  for (const auto& [key, sum] : counts.sums) {
    const auto row = std::ranges::find(counts.places, key.first) - counts.places.begin();
    const auto column = std::ranges::find(metrics, key.second) - metrics.begin();
    wrong += sum > 0 ? 1 : 0;
    map.cells.push_back({.row = static_cast<std::size_t>(row),
                         .column = static_cast<std::size_t>(column),
                         .shade = sum > 0 ? Shade::fail_far : Shade::pass_wide,
                         .text = fmt::format("{:g}", sum)});
  }
  if (wrong == 0) return {};  // the table of counters says so
  map.description = fmt::format("A matrix of {} places and {} classes of faults; {} of {} cells are not 0.",
                                counts.places.size(), metrics.size(), wrong, counts.sums.size());
  return {.svg = heat_map(map),
          .caption = fmt::format("{}Each cell shows how often all records together counted a fault of a class at a "
                                 "place; {} of {} are not 0. An empty cell was not measured. ",
                                 kind_words(plan), wrong, counts.sums.size())};
}

}  // namespace assay::figures
