// feasible: why a plan could never be accepted, or its probes never measure, said before anything is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/cli/commands.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/error.h"

namespace assay::cli {

/// The requirements of `plan` whose own fleet is measured and too small to be a reference.
std::vector<std::string> small_fleets(const plan::Plan& plan);

/// Required figures that the nodes of `plan` are too few for: a fleet that is a reference, pairs, groups. The hint is a
/// command that would do: for chosen nodes (`request.nodes`) some more of `site`, the names of all nodes, first those
/// that the run of `request.continues` accepted.
std::optional<InputError> too_few_nodes(const plan::Plan& plan, const PlanRequest& request,
                                        const std::vector<std::string>& site);

/// Required figures of a maker's GPUs on this machine, which has no device of its driver. A library named in a
/// requirement is taken for one that knows better.
std::optional<InputError> no_gpu_here(const plan::Plan& plan);

}  // namespace assay::cli
