// step_watch: readings of energy counters during a load that is switched: steps, or a square of one frequency. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "probes/core/step_response.h"

namespace assay::power {

/// When a load was raised and lowered, in s on the clock of the readings, in the order taken.
struct SwitchTimes {
  std::vector<double> up = {}, down = {};
};

/// All steps up as one counter shows them, or why not.
struct StepsShown {
  std::vector<StepResponse> steps = {};
  std::string unseen = {};  ///< "step 2 of 3: …"; empty when all are seen
};

/// The steps of `switched` in `power`: means over `interval_s` that end at their times. `first_s` is when the idle time
/// before the first step began, `end_s` when the last hold ended.
StepsShown steps_shown(std::span<const TimedValue> power, const SwitchTimes& switched, double first_s, double end_s,
                       double interval_s);

/// The swing of each period of a square, in the unit of `power`: the mean of its upper half less that of its lower
/// half. Readings whose interval holds an edge are left out. Periods without a reading in a half are left out.
std::vector<double> swings(std::span<const TimedValue> power, const SwitchTimes& switched, double interval_s);

}  // namespace assay::power
