// schema: checks a document against a JSON Schema; errors name the place in the document.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/json_io.h"

namespace assay::profiles {

/// Checks `document` against the embedded schema `schema_name` ("schema" for profiles, "site.schema", …). The error is
/// the deepest violation: its path, the value, what the schema allows, and the schema's description as the hint.
std::optional<InputError> check_schema(const nlohmann::json& document, const std::string& schema_name,
                                       const std::string& where);

}  // namespace assay::profiles
