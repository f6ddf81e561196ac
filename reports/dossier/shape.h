// shape: checks that a JSON document has exactly the members and forms of a template.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/json_io.h"

namespace assay::dossier {

/// Compares `value` with `shape`. In a shape an object lists every member (a name that ends in '?' may be absent), an
/// array has one element that every element must fit, and a string names a form: "text", "flag", "count" (0 to 2^53),
/// "decimal" (a string that es6_number writes), "digest" (64 hex digits), "time" (UTC), or "=word" for that very text.
/// The error names the place under `where`.
std::optional<InputError> check_shape(const nlohmann::json& value, const nlohmann::json& shape,
                                      const std::string& where);

}  // namespace assay::dossier
