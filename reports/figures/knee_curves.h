// knee_curves: figures of growing groups per node, and the counter that rose where they fall.
#pragma once

#include <vector>

#include "reports/figures/network_curves.h"

namespace assay::figures {

/// For each knee of `verdict` with two groups or more the figure per node over the number of nodes, with its limits,
/// and below it the counter that rose, if one did. Groups that fall out are crosses; the knee has its name below the
/// axis.
std::vector<NetworkCurve> knee_curves(const plan::Plan& plan, const judge::Verdict& verdict);

}  // namespace assay::figures
