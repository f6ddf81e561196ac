// failover_record: writes the findings of a failover as measurements and conditions of each rack.
#include "probes/meters/failover_record.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::meters {
namespace {

void record_failover(const Failover& made, Recorder& record) {
  const Subject rack{.kind = "rack", .id = made.loss.rack};
  record.measurement("lost_nodes", static_cast<double>(made.lost_nodes.size()), rack);
  double rise_w = 0, share = 0;
  for (const auto& [name, watts] : made.rise_w) rise_w += watts;
  for (const auto& [name, one] : made.rating_share) share = std::max(share, one);
  record.measurement("feed_rise", rise_w, rack);
  if (!made.rating_share.empty()) record.measurement("failover_rating_share", share, rack);
  record.measurement("power_dip", made.dip, rack);
  record.measurement("dip_time", made.dip_s, rack);
  if (made.outage_s) record.measurement("outage", *made.outage_s, rack);
  if (made.imbalance) record.measurement("restored_imbalance", *made.imbalance, rack);
  record.condition("feed_lost", made.loss.feed, rack);
  record.condition("feed_restored", made.loss.restored_s.has_value(), rack);
  const auto listed = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")).substr(0, kLongestValue);
  };
  record.condition("nodes_lost", listed(made.lost_nodes), rack);
  record.condition("nodes_unseen", listed(made.unseen_nodes), rack);
}

}  // namespace

FeedReadings power_so_far(const Meter& meter, const MeterHistory& history) {
  FeedReadings of{.meter = &meter, .readings = {}};
  for (const auto& [key, series] : history.series) {
    if (key.first != Quantity::power) continue;
    for (const auto& [slot, value] : series.values())
      of.readings.push_back({.quantity = Quantity::power,
                             .outlet = key.second,
                             .value = value,
                             .taken_s = (static_cast<double>(slot) + 0.5) * series.interval_s()});
  }
  return of;
}

void record_failovers(std::span<const FeedReadings> meters, const std::vector<FeedLoss>& losses, double interval_s,
                      Recorder& record) {
  record.condition("event_seen", !losses.empty());
  for (const auto& loss : losses) {
    const auto made = failover_of(meters, loss, interval_s);
    if (made)
      record_failover(*made, record);
    else
      record.condition("failover_refused", made.error(), {.kind = "rack", .id = loss.rack});
  }
}

}  // namespace assay::meters
