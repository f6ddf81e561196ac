// parameters: a probe's parameters, typed by their units.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "probes/core/record.h"
#include "probes/core/units.h"

namespace assay {

/// One parameter. `unit` decides the type: "" text, "1" a whole number, "B" bytes ("64MiB"), "s" seconds ("250ms").
struct Parameter {
  std::string_view name;  ///< snake_case; the flag is the same with hyphens
  std::string_view unit = "";
  std::string_view fallback;    ///< the value when none is given
  std::string_view quick = "";  ///< the value under --quick when none is given; empty: the same as fallback
  std::string_view meaning;
  std::string_view choices = "";  ///< for text: the allowed words, separated by one space; empty: any
  int spent = 0;  ///< of a time: how often a complete run spends it, at least, so that no attempt is shorter
};

/// A number in `unit`; a text if `unit` is empty.
constexpr Parameter parameter(std::string_view name, std::string_view unit, std::string_view fallback,
                              std::string_view meaning, std::string_view quick = "") {
  return {.name = name, .unit = unit, .fallback = fallback, .quick = quick, .meaning = meaning};
}
/// A time that a complete run spends `times` times at least.
constexpr Parameter spent(std::string_view name, std::string_view fallback, std::string_view meaning,
                          std::string_view quick = "", int times = 1) {
  Parameter time = parameter(name, "s", fallback, meaning, quick);
  time.spent = times;
  return time;
}
/// One word of `choices`.
constexpr Parameter choice(std::string_view name, std::string_view fallback, std::string_view choices,
                           std::string_view meaning, std::string_view quick = "") {
  return {.name = name, .fallback = fallback, .quick = quick, .meaning = meaning, .choices = choices};
}

/// A parameter's text that does not fit its type; what() names the type.
struct BadParameter : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads `text` as `parameter` demands: bytes and whole numbers become int64, seconds double. Throws BadParameter.
Value parse_parameter(const Parameter& parameter, std::string_view text);

/// The values in force for one run of a probe; every parameter of the spec is present.
class Parameters {
 public:
  /// Takes the values over; they must come from parse_parameter.
  explicit Parameters(Values values) : values_(std::move(values)) {}

  /// The text parameter `name`. All accessors throw std::logic_error when the spec has no such parameter or type.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  /// The whole number `name`.
  [[nodiscard]] std::int64_t count(std::string_view name) const;
  /// The same. Throws BadParameter unless it is from `least` to `most`.
  [[nodiscard]] std::int64_t count(std::string_view name, std::int64_t least, std::int64_t most) const;
  /// The size `name`.
  [[nodiscard]] Bytes bytes(std::string_view name) const;
  /// The duration `name`.
  [[nodiscard]] Seconds seconds(std::string_view name) const;
  /// All of them, for the record.
  [[nodiscard]] const Values& values() const { return values_; }

 private:
  [[nodiscard]] const Value& find(std::string_view name) const;
  Values values_;
};

}  // namespace assay
