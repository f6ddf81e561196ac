// contrast: requirements that compare a feature switched on with the same switched off.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrator/plan/profile.h"
#include "probes/core/description.h"
#include "probes/core/error.h"

namespace assay::plan {

/// Refuses a requirement of a document, which meets its schema, that has neither or both of `limit` and `contrast`.
std::optional<InputError> check_target(const nlohmann::json& entry, const std::string& here);

/// Refuses fields that do not go with a contrast: another reference, an extreme of the samples, every coordinate.
std::optional<InputError> check_contrast(const Requirement& requirement, const std::string& here);

/// Refuses a contrast that `probe` cannot make: no such parameter or condition, equal values, a metric without a better
/// side or with a count of faults.
std::optional<InputError> check_contrast(const Requirement& requirement, const Description& probe,
                                         const std::string& here);

/// The parameters of `requirement`, of a contrast with the feature on or off.
Values parameters_of(const Requirement& requirement, bool on);

/// "a gain of at least 5 % is demanded", "a loss of at most 10 % is allowed".
std::string gain_words(const Contrast& contrast);

/// "huge_pages = off".
std::string switch_words(const Contrast& contrast, bool on);

}  // namespace assay::plan
