// grouping: flags with something in common are one finding.
#pragma once

#include <vector>

#include "orchestrator/drift/report.h"

namespace assay::drift {

/// Names in each flag the smallest elements that it shares with others, and gives the groups. Flags belong together
/// when their onsets lie within three nights of each other: on several units of a node, several nodes of a leaf, then
/// of a rack. A figure of two nodes that was bad with one partner only is their pair's.
std::vector<Group> group_flags(std::vector<Flag>& flags);

/// Units of tonight with a flag that was raised within three nights: by how many nodes they are on, a finding of its
/// own. `nodes` is how many were measured tonight, `ratio` the share beyond which the cause is common.
std::vector<FleetFinding> common_causes(const std::vector<Flag>& flags, Date as_of, std::size_t nodes, double ratio);

}  // namespace assay::drift
