// loosened: requirements of a profile that are easier to meet than in the profile that it extends.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/plan/profile.h"

namespace assay::plan {

/// What `changed` asks less strictly, or measures otherwise, than the inherited `before` of the same id: limit,
/// statistic, severity, conditions, samples, parameters, place.
std::vector<Loosened> loosened_in(const Requirement& before, const Requirement& changed, const std::string& base);

/// The same of the profile as a whole: guard factor, confidence, parts of a node, peaks, companions.
std::vector<Loosened> loosened_in(const Profile& before, const Profile& changed);

/// One of them in a sentence.
std::string words_of_loosened(const Loosened& one);

}  // namespace assay::plan
