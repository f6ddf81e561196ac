// quantities: the counterpart of an imported figure among the requirements of a profile.
#pragma once

#include <string>

#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/plan/profile.h"

namespace assay::imports {

/// Whether the figure is of the requirement's quantity, operation, size and statistic. `parameters` are those of the
/// requirement's step, with `nodes` and `ranks` where they are known. A requirement whose probe is a tool's name with
/// underscores, "rvs" or "rocm_bandwidth_test", is of that tool's figures, and its parameters are coordinates of them,
/// or their statistic.
bool same_quantity(const std::string& tool, const judge::Figure& figure, const plan::Requirement& requirement,
                   const Values& parameters);

/// The first setting in which the figure and the requirement differ, or with `stated` that the output does not state;
/// the figure's conditions, if it has any; empty if they agree.
std::string first_difference(const judge::ImportSource& source, const judge::Figure& figure,
                             const plan::Requirement& requirement, const Values& parameters, bool stated);

/// The coordinates of a figure for people: "operation all_reduce, size 1024".
std::string coordinates(const Values& at);

}  // namespace assay::imports
