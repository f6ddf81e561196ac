// site_step: rise, ramp, overshoot and settling of a load's steps as the site's meters show them.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/metered.h"
#include "probes/core/record.h"
#include "probes/core/step_response.h"

namespace assay::judge {

/// The metrics of power_feed that no meter has: the judge joins them from readings and from the marks of the load.
using plan::kRamp;
inline constexpr std::array<std::string_view, 4> kOfSteps = {"rise_time", kRamp, "overshoot", "settling_time"};

/// The power of one subject over time, each reading at the middle of its interval, in s since 1970.
struct PowerSeries {
  std::vector<TimedValue> readings;
  double interval_s = 0;
  std::set<std::string> meters;  ///< whose readings, or their sum, it is
};

/// The power in the records `watches` of each rack by its own metric, and of each feed, shelf and meter by its
/// readings; nodes and outlets are left out.
std::map<Subject, PowerSeries> powers_in(const std::map<int, Record>& watches);

/// Every step up that the record `load` of rank 0 marks, between the marks next to it. The first step of a load that
/// grew over groups of ranks has no quiet time before it and is left out.
std::vector<StepSeen> steps_up(const Record& load);

/// Figures of the steps up of one load, one sample a step, and why there are none by subject.
struct StepFigures {
  std::vector<Measurement> measurements;
  std::vector<Condition> conditions;
  std::map<Subject, std::string> missing;
};

/// Joins the marks in the record `load` of rank 0 (step_up, step_down: s since 1970) with the power of every rack,
/// feed, shelf and meter in the records `watches`. A subject has figures only when each step up is seen by
/// step_response: its meters state an averaging window, are in no doubt, and are read and average within a fifth of the
/// rise. The first step of a load that grew over groups of ranks has no quiet time before it and is left out.
/// power_ramp needs the accuracy of every meter.
StepFigures steps_of(const Record& load, const std::map<int, Record>& watches);

}  // namespace assay::judge
