// fault_chart: counts of faults by their place: cases or phases (rows) by class (columns).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// The chart of `requirement` and of the others that allow no fault of the same measurement, wherever it was made: in
/// each cell how often the records of the steps in `results` counted one. Drawn with the first of them. Empty if there
/// are not two such requirements, or the records have not two places, or those have not one coordinate each.
Chart fault_chart(const plan::Plan& plan, const plan::Requirement& requirement,
                  const std::vector<const judge::Result*>& results,
                  const std::map<std::string, std::vector<Record>>& records);

}  // namespace assay::figures
