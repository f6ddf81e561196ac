// lint: metrics of kind fault must be judged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/plan/profile.h"
#include "probes/core/description.h"

namespace assay::plan {

/// The sizes in B that the parameter `sizes` lists; empty if there is none.
std::vector<std::int64_t> sizes_in(const Values& parameters);

/// A metric of kind fault of `probe`, run with `parameters`, that none of `requirements`, which share its steps, judges
/// wherever it is measured: with "at": "every", or at each of the sizes, or without coordinates if there are no sizes.
/// If one of them is required, a required one must judge it. `where` is the place of the profile.
std::optional<InputError> unjudged_fault(const Description& probe, const Values& parameters,
                                         std::span<const Requirement* const> requirements, const std::string& where);

}  // namespace assay::plan
