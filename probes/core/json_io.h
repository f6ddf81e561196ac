// json_io: strict reading of JSON that may be hostile, and the JSON form of values and records.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/record.h"

namespace assay {

/// Bounds on one JSON document.
struct JsonLimits {
  std::size_t max_bytes = kLargestDocument;
  int max_depth = 32;  ///< the deepest document of ours has 9 levels
  /// Values and members, counted before any is stored: each takes some 100 B, so that this bounds memory where the size
  /// of the text does not.
  std::size_t max_values = 1'000'000;
  bool comments = false;  ///< takes // and /* */, which configuration files of other programs have
  /// Whether `key` may be repeated in the object that is the member `object`, or a list's of that name; nullptr: none
  /// may. A repeated one is kept as "key (2)", "key (3)", … up to 100 times.
  bool (*may_repeat)(std::string_view object, std::string_view key) = nullptr;
};

/// Of a plan, a verdict and a statement: those of 10,000 nodes and 30 requirements have some 12 million.
inline constexpr std::size_t kMostValuesOfRun = 16'000'000;

/// Parses `text` and refuses errors that nlohmann would let pass: duplicate keys, depth, size and number of values over
/// the limits, a byte order mark, and NUL, which it takes for the end of the text; and its own refusals: trailing text,
/// bad UTF-8, NaN, numbers over the range, and comments unless `limits` takes them. `where` names the input in errors.
/// Nothing else in this code base reads JSON.
std::expected<nlohmann::json, InputError> parse_json(std::string_view text, const std::string& where,
                                                     const JsonLimits& limits = {});

/// parse_json for output of another process of ours; throws std::runtime_error with the error's text.
nlohmann::json parse_json_or_throw(std::string_view text, const std::string& where);

/// A number of a document that becomes the requested whole type. The library's own conversion makes anything of 1e20,
/// 0.5 or -1; this one throws json::out_of_range where the type does not hold the number.
class Whole {
 public:
  explicit Whole(const nlohmann::json& value) : value_(value) {}

  template <std::integral Type>
  operator Type() const {
    if (value_.is_number_unsigned() && std::in_range<Type>(value_.get<std::uint64_t>())) return value_.get<Type>();
    if (value_.is_number_integer() && std::in_range<Type>(value_.get<std::int64_t>())) return value_.get<Type>();
    throw nlohmann::json::out_of_range::create(406, value_.dump() + " is no whole number that fits", &value_);
  }

 private:
  const nlohmann::json& value_;
};

/// The JSON form of `value`.
nlohmann::json to_json(const Value& value);
/// The JSON form of `values`: an object.
nlohmann::json to_json(const Values& values);
/// The JSON form of `subject`: {"gpu": "GPU-8f2…"}.
nlohmann::json to_json(const Subject& subject);

/// A scalar as a Value; nothing for null, arrays, objects, or a whole number beyond int64.
std::optional<Value> value_from(const nlohmann::json& json);
/// An object of scalars; nothing if any member is not a scalar.
std::optional<Values> values_from(const nlohmann::json& json);
/// An object with one known kind; nothing otherwise.
std::optional<Subject> subject_from(const nlohmann::json& json);

}  // namespace assay
