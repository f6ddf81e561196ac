// probe_check: whether a probe records the inputs of a requirement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/placement.h"
#include "orchestrator/plan/profile.h"
#include "probes/core/description.h"

namespace assay::plan {

/// Demand of a requirement that the probe does not meet; nothing if it meets all.
std::optional<InputError> check_against(const Requirement& requirement, const Description& probe,
                                        const std::string& here);

/// A requirement that must be inconclusive, because the samples that its probe takes at most, in one attempt or in all
/// of the first stage, are too few for it; nothing if the probe has no such parameter.
std::optional<InputError> check_samples(const Requirement& requirement, const Values& parameters, double confidence,
                                        const std::string& here);

/// A step on a number of nodes on which the probe cannot work with these parameters, and the nearest that would do.
/// `spots` are the places of the requirement; those without nodes are passed over.
std::optional<InputError> check_group_sizes(const std::vector<Spot>& spots, const Description& probe,
                                            const Values& parameters, const std::string& here);

}  // namespace assay::plan
