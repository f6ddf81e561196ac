// json_io: strict reading of JSON that may be hostile, and the JSON form of values and records.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "probes/core/record.h"

namespace assay {

/// What was wrong, where, and what would help. Printed as "where: what" and, on its own line, "hint: …".
struct InputError {
  std::string where;  ///< coordinates in the input: "profiles/h200.json: requirements[3].limit.unit" or "line 4"
  std::string what;
  std::string hint;

  /// Both lines, without a final newline.
  [[nodiscard]] std::string text() const;
};

/// Bytes of the largest document that is read: of 10,000 nodes and 30 requirements the plan has 90 MB, the verdict 230
/// MB.
inline constexpr std::size_t kLargestDocument = 256 << 20;

/// Bounds on one JSON document.
struct JsonLimits {
  std::size_t max_bytes = kLargestDocument;
  int max_depth = 32;  ///< the deepest document of ours has 9 levels
};

/// Parses `text` and refuses what nlohmann would let pass: duplicate keys, depth and size over the limits, a byte order
/// mark, and NUL, which it takes for the end of the text; and what it refuses itself: trailing text, bad UTF-8, NaN,
/// numbers over the range. `where` names the input in errors. Nothing else in this code base reads JSON.
std::expected<nlohmann::json, InputError> parse_json(std::string_view text, const std::string& where,
                                                     const JsonLimits& limits = {});

/// parse_json for what another process of ours wrote; throws std::runtime_error with the error's text.
nlohmann::json demand_json(std::string_view text, const std::string& where);

/// Reads a whole regular file of at most `max_bytes`. Errors name the path and the cause.
std::expected<std::string, InputError> read_file(const std::string& path, std::size_t max_bytes = kLargestDocument);

/// The JSON form of `value`.
nlohmann::json to_json(const Value& value);
/// The JSON form of `values`: an object.
nlohmann::json to_json(const Values& values);
/// The JSON form of `subject`: {"gpu": "GPU-8f2…"}.
nlohmann::json to_json(const Subject& subject);

/// A scalar as a Value; nothing for null, arrays, objects, or a whole number beyond int64.
std::optional<Value> value_from(const nlohmann::json& json);
/// An object of scalars; nothing when any member is not a scalar.
std::optional<Values> values_from(const nlohmann::json& json);
/// An object with one known kind; nothing otherwise.
std::optional<Subject> subject_from(const nlohmann::json& json);

}  // namespace assay
