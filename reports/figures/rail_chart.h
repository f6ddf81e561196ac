// rail_chart: a matrix of rails (rows) by leaves (columns).
#pragma once

#include <string_view>
#include <vector>

#include "reports/figures/captions.h"

namespace assay::figures {

/// The rail that `result` is about: behind "@" of a pair, group or cluster on one rail ("n01+n02@rail-3"), and a port's
/// own name, because ports of one name hang on one rail where nodes are alike. Empty: none.
std::string_view rail_of(const judge::Result& result);

/// The chart of `requirement` over rails and leaves: in each cell the worst of its results. Empty if no result is of a
/// rail or the site has no leaves.
Chart rail_chart(const plan::Plan& plan, const StepIndex& steps, const plan::Requirement& requirement,
                 const std::vector<const judge::Result*>& results);

}  // namespace assay::figures
