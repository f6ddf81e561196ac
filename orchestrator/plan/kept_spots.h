// kept_spots: placements of a requirement that the probe's builds or a draw leave out.
#pragma once

#include <cstddef>
#include <vector>

#include "orchestrator/plan/placement.h"
#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Takes the nodes from spots that have a machine for which there is no build of `program`.
void keep_built(const Program& program, const site::Site& site, std::vector<Spot>& spots);

/// Takes the nodes from all spots of `requirement` that are not among `drawn`; what growing groups are held against
/// stays. Returns how many drawn ones can be measured.
std::size_t keep_drawn(const Requirement& requirement, const std::vector<DrawnCell>& drawn, std::vector<Spot>& spots);

}  // namespace assay::plan
