// canonical_json: the one spelling of a JSON document, RFC 8785 (JCS).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/json_io.h"

namespace assay::dossier {

/// The RFC 8785 bytes of `document`: no white space, keys sorted by UTF-16 code units, es6_number. Refused: a number
/// that is not finite, a whole number beyond 2^53 (its neighbours would read back as the same double).
std::expected<std::string, InputError> canonical_json(const nlohmann::json& document);

/// Appends the string `text`, which is UTF-8, as it is spelt there.
void add_canonical(std::string_view text, std::string& out);

/// Parses `bytes` and refuses them unless they are canonical_json of their content. One comparison shuts out duplicate
/// keys, odd spellings of numbers and escapes, white space, other key orders, trailing bytes and a byte order mark.
std::expected<nlohmann::json, InputError> read_canonical_json(std::string_view bytes, const std::string& where,
                                                              const JsonLimits& limits = {});

}  // namespace assay::dossier
