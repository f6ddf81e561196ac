// guard: ratings, blind meters and the sum of all racks.
#include "probes/meters/guard.h"

#include <fmt/format.h>

#include "probes/meters/derived.h"

namespace assay {

std::string over_limit(const Watched& watched, double limit_w, double oldest_s) {
  std::vector<MeterPower> powers;
  for (const auto& one : watched) {
    const Meter& meter = one->meter();
    const auto newest = one->newest_power();
    if (newest) powers.push_back({.meter = &meter, .power_w = newest->value});
    if (!meter.rating_w) continue;
    if (!newest || newest->taken_s < oldest_s)
      return fmt::format("{} has a rating and does not answer: a load must not go on unseen", meter.name);
    if (newest->value > *meter.rating_w)
      return fmt::format("{} is at {:.0f} W, its rating is {:.0f} W", meter.name, newest->value, *meter.rating_w);
  }
  const double all_w = power_of_racks_w(powers);
  if (limit_w > 0 && all_w > limit_w)
    return fmt::format("all racks together are at {:.0f} W, the limit is {:.0f} W", all_w, limit_w);
  return "";
}

}  // namespace assay
