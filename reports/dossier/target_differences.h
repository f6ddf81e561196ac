// target_differences: how the targets that were judged differ from those that were agreed, limit by limit.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/plan/profile.h"

namespace assay::dossier {

/// A profile as one document in which the requirements are members by their ids: a difference then names its
/// requirement.
nlohmann::json by_requirement(const plan::Profile& profile);

/// How `found` differs from the `expected` targets, one sentence a difference, requirement by requirement, the less
/// strict first and marked LOOSER; empty if they are equal.
std::vector<std::string> target_differences(const plan::Profile& found, const plan::Profile& expected);

}  // namespace assay::dossier
