// detection: shares of faults that are found, and their record.
#include "probes/cuda/detection.h"

#include <fmt/format.h>

#include "probes/core/recorder.h"
#include "probes/core/small_samples.h"

namespace assay::cuda {
namespace {

constexpr std::string_view kNames[] = {"single_bit", "burst", "warp_aligned", "rare_stuck"};

}  // namespace

HourOfCheck hour_of_results(double compared, double products, double sets) {
  return {.transient = compared,
          .stuck = -std::expm1(compared * products / sets * std::log1p(-1.0 / static_cast<double>(kStuckEvery))),
          .rounds = 1};
}

ShareBounds found_in_hour(FaultClass fault, const FaultCount& count, const HourOfCheck& hour) {
  constexpr double kOneSide = 0.975;
  const auto in_hour = [&](double share) {
    if (fault != FaultClass::rare_stuck) return hour.transient * share;
    return hour.stuck * (share >= 1 ? 1 : -std::expm1(hour.rounds * std::log1p(-share)));
  };
  return {.low = in_hour(1 - share_at_most(count.put, count.put - count.found, kOneSide)),
          .high = in_hour(share_at_most(count.put, count.found, kOneSide))};
}

void record_faults(Recorder& record, const Subject& subject, std::string_view prefix, const FaultCounts& counts,
                   const HourOfCheck& hour) {
  for (const FaultClass fault : kFaultClasses) {
    const auto place = static_cast<std::size_t>(fault);
    if (counts[place].put == 0) continue;
    const ShareBounds bounds = found_in_hour(fault, counts[place], hour);
    const std::string name = fmt::format("{}{}", prefix, kNames[place]);
    record.condition(name + "_low", bounds.low, subject);
    record.condition(name + "_high", bounds.high, subject);
    record.condition(name + "_put", static_cast<std::int64_t>(counts[place].put), subject);
  }
}

}  // namespace assay::cuda
