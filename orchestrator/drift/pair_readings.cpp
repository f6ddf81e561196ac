// pair_readings: turns a measurement of two nodes into a figure of one of them: the partner's excess over the typical
// level is taken out, and of several partners the median counts.
#include <algorithm>
#include <cmath>

#include "orchestrator/drift/charts.h"
#include "orchestrator/drift/detector_internal.h"

namespace assay::drift {

double Detector::Internal::excess_of(const Visit& visit, std::uint32_t metric, const SortedReadings& given,
                                     std::optional<double> typical) const {
  const auto partner = given.nodes.find(visit.partner);
  if (partner == given.nodes.end()) return 0;
  const MetricTrack& track = metrics[metric];
  const auto id_of = [&](std::uint32_t series) -> const std::string& {
    return fleet->units[fleet->series[series].unit].id;
  };
  const auto found = std::ranges::lower_bound(track.series, fleet->units[partner->second].id, {}, id_of);
  if (found == track.series.end() || fleet->series[*found].unit != partner->second) return 0;
  return track.level.excess(slot_of[*found], typical);
}

void Detector::Internal::take_partners(LevelInput& input, std::uint32_t metric, const Night& night,
                                       const SortedReadings& given, std::optional<double> typical) const {
  const MetricTrack& track = metrics[metric];
  const std::uint32_t series = track.series[input.slot];
  std::vector<double> own;
  const auto take = [&](std::uint32_t i) {
    const Reading& reading = night.readings[i];
    const double x = track.level.figure(reading.value) - excess_of(night.visits[reading.visit], metric, given, typical);
    if (std::isfinite(x)) own.push_back(x);
  };
  take(given.regular[series]);
  if (const auto found = given.with_others.find(series); found != given.with_others.end())
    std::ranges::for_each(found->second, take);
  if (!own.empty()) input.partner = track.level.figure(input.value) - median_of(own);
}

}  // namespace assay::drift
