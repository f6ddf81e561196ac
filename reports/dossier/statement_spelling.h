// statement_spelling: rules of a statement beyond its schema.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"

namespace assay::dossier {

/// Rules beyond the schema: the one spelling of each number, and the range of months, days and hours.
std::optional<InputError> check_spelling(const nlohmann::json& predicate, const std::string& where);

}  // namespace assay::dossier
