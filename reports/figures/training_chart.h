// training_chart: parts of the time of a training step, and of a recovery from a fault.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// The figures of a requirement on train_step (parts of the step of each subject; of one subject also each rank's time
/// outside of collectives, and the activities of ranks in one step) or fault_resume (parts of the time to repair, by
/// kind of fault and part of the step), from the raw samples of the steps in `results`. Drawn with the first
/// requirement of the same measurement. None for other probes, and where no record has all parts.
std::vector<Chart> training_charts(const plan::Plan& plan, const plan::Requirement& requirement,
                                   const std::vector<const judge::Result*>& results,
                                   const std::map<std::string, std::vector<Record>>& records);

}  // namespace assay::figures
