// soak_chart: the steps of a soak over its time, the point at which it had settled, and its interruptions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// One figure for each record of train_soak in `results`, at most kMostSoaks, drawn with the first requirement of the
/// same measurement; the caption has the conclusion from the time under load, as the record has it. None for other
/// probes, and where a record has no windows.
std::vector<Chart> soak_charts(const plan::Plan& plan, const plan::Requirement& requirement,
                               const std::vector<const judge::Result*>& results,
                               const std::map<std::string, std::vector<Record>>& records);

/// More figures of one requirement are no help; the records have all.
inline constexpr std::size_t kMostSoaks = 8;

}  // namespace assay::figures
