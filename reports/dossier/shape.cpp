// shape: one recursion over value and template.
#include "reports/dossier/shape.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/es6_number.h"
#include "probes/core/suggest.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/canonical_json.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

bool is_decimal(const std::string& text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && rest == text.data() + text.size() && es6_number(number) == text;
}

bool fits(const json& value, const std::string& form) {
  if (form == "flag") return value.is_boolean();
  if (form == "count") return value.is_number_unsigned();
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (form == "decimal") return is_decimal(text);
  if (form == "digest") return files::is_sha256(text);
  if (form == "time") return is_utc_text(text);
  if (form.starts_with('=')) return text == form.substr(1);
  return true;
}

std::optional<InputError> check_object(const json& value, const json& shape, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& [key, inner] : shape.items()) {
    const bool optional = key.ends_with('?');
    names.push_back(optional ? key.substr(0, key.size() - 1) : key);
    const auto member = value.find(names.back());
    const std::string here = where + "." + names.back();
    if (member == value.end()) {
      if (optional) continue;
      return InputError{here, "is missing", "the predicate is closed: every member is there and no other"};
    }
    if (auto problem = check_shape(*member, inner, here)) return problem;
  }
  for (const auto& [key, unused] : value.items()) {
    if (std::ranges::find(names, key) == names.end())
      return InputError{where, fmt::format("has an unknown member '{}'", key), suggestion(key, names)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<InputError> check_shape(const json& value, const json& shape, const std::string& where) {
  if (shape.is_object()) {
    if (!value.is_object()) return InputError{where, "is not an object", ""};
    return check_object(value, shape, where);
  }
  if (shape.is_array()) {
    if (!value.is_array()) return InputError{where, "is not an array", ""};
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (auto problem = check_shape(value[i], shape[0], fmt::format("{}[{}]", where, i))) return problem;
    }
    return std::nullopt;
  }
  const auto& form = shape.get_ref<const std::string&>();
  if (fits(value, form)) return std::nullopt;
  if (form.starts_with('=')) return InputError{where, fmt::format("is not '{}'", form.substr(1)), ""};
  return InputError{where, fmt::format("is not of the form '{}'", form), ""};
}

}  // namespace assay::dossier
