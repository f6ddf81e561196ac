// guard: stops a load when a rating or the limit of all racks is exceeded, or a meter that is needed gives no reading;
// see guard.h.
#include "probes/meters/guard.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "probes/meters/derived.h"

namespace assay::meters {
namespace {

/// Whether `one` is among what power_of_racks_w adds up: no better meter of its rack was ever read.
bool counts_towards_racks(const WatchedMeter& one, const Watched& watched) {
  constexpr std::string_view kBestFirst[] = {"rack", "feed", "shelf"};  // as power_of_racks_w takes them
  const auto* own = std::ranges::find(kBestFirst, one.meter().subject);
  if (own == std::end(kBestFirst) || one.meter().rack.empty()) return false;
  return std::ranges::none_of(watched, [&](const auto& other) {
    return other->meter().rack == one.meter().rack && other->newest_power() &&
           std::ranges::find(kBestFirst, other->meter().subject) < own;
  });
}

/// The first meter that is needed and was not read since `oldest_s`.
std::string unseen(const Watched& watched, double limit_w, double oldest_s) {
  for (const auto& one : watched) {
    const auto newest = one->newest_power();
    if (newest && newest->taken_s >= oldest_s) continue;
    const std::string& name = one->meter().name;
    if (one->meter().rating_w)
      return fmt::format("{} has a rating and does not answer: a load must not go on unseen", name);
    if (limit_w > 0 && newest && counts_towards_racks(*one, watched))
      return fmt::format("{} counts towards the limit of all racks and answers no more: a load must not go on unseen",
                         name);
  }
  return "";
}

}  // namespace

std::string over_limit(const Watched& watched, double limit_w, double oldest_s) {
  std::vector<MeterPower> powers;
  for (const auto& one : watched) {
    const Meter& meter = one->meter();
    const auto newest = one->newest_power();
    if (!newest) continue;
    powers.push_back({.meter = &meter, .power_w = newest->value});
    if (meter.rating_w && newest->value > *meter.rating_w)
      return fmt::format("{} is at {:.0f} W, its rating is {:.0f} W", meter.name, newest->value, *meter.rating_w);
  }
  const double all_w = power_of_racks_w(powers);
  if (limit_w > 0 && all_w > limit_w)
    return fmt::format("all racks together are at {:.0f} W, the limit is {:.0f} W", all_w, limit_w);
  return unseen(watched, limit_w, oldest_s);
}

}  // namespace assay::meters
