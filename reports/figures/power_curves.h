// power_curves: temperatures, clocks and power over time in a soak, and the response of power to a step of a load.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// More figures of one requirement are no help; the records have all.
inline constexpr std::size_t kMostCurves = 12;

/// Figures of each record of thermal_soak in `results`: its temperatures, its clocks and its power over the time since
/// the load began, with the steady mark. Readings are drawn evenly over the time before the mark and over that after
/// it, as the record has their order and not their times. At most kMostCurves, drawn with the first requirement of the
/// same measurement; none for other probes.
std::vector<Chart> heat_curves(const plan::Plan& plan, const plan::Requirement& requirement,
                               const std::vector<const judge::Result*>& results,
                               const std::map<std::string, std::vector<Record>>& records);

/// Figures of how power answered a load that was switched, at most kMostCurves, drawn with the first requirement of the
/// same measurement: of each package in a record of power_step, and, where the requirement is a figure of steps during
/// a load (judge::kOfSteps), of each subject of the results by its meters in `watches`. Every step is a line of its own
/// on the time since its mark; a square is one line over the whole time.
std::vector<Chart> step_curves(const plan::Plan& plan, const plan::Requirement& requirement,
                               const std::vector<const judge::Result*>& results,
                               const std::map<std::string, std::vector<Record>>& records,
                               const std::map<int, Record>& watches);

}  // namespace assay::figures
