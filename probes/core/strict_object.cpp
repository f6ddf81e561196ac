// strict_object: typed access to the fields of an object, with errors that name their path.
#include "probes/core/strict_object.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/text.h"

namespace assay {

using nlohmann::json;

StrictObject::StrictObject(const json& object, std::string path, std::string hint)
    : object_(object), path_(std::move(path)), hint_(std::move(hint)) {
  if (!object.is_object()) throw InputError{path_, "is not an object", hint_};
}

const json* StrictObject::optional(std::string_view name) {
  const auto found = object_.find(name);
  if (found == object_.end()) return nullptr;
  taken_.emplace_back(found.key());
  return &*found;
}

const json& StrictObject::need(std::string_view name) {
  if (const json* found = optional(name)) return *found;
  refuse(name, "is missing");
}

std::string StrictObject::text(std::string_view name, bool (*allowed)(std::string_view)) {
  const json& value = need(name);
  if (!value.is_string()) refuse(name, "is not text");
  auto text = value.get<std::string>();
  if (allowed != nullptr && !allowed(text)) refuse(name, "is not text of the allowed form");
  return text;
}

bool StrictObject::flag(std::string_view name) {
  const json& value = need(name);
  if (!value.is_boolean()) refuse(name, "is neither true nor false");
  return value.get<bool>();
}

double StrictObject::number(std::string_view name, double least, double most) {
  const json& value = need(name);
  if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most) return value.get<double>();
  refuse(name, fmt::format("is not a number from {} to {}", least, most));
}

std::int64_t StrictObject::whole(std::string_view name, std::int64_t least, std::int64_t most) {
  using Limits = std::numeric_limits<std::int64_t>;
  const json& value = need(name);
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= std::uint64_t{Limits::max()}
                                               : value.is_number_integer();
  if (fits && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most) return value.get<std::int64_t>();
  const bool bounded = least != Limits::min() || most != Limits::max();
  refuse(name, bounded ? fmt::format("is not a whole number from {} to {}", least, most) : "is not a whole number");
}

std::uint64_t StrictObject::count(std::string_view name, std::uint64_t least, std::uint64_t most) {
  const json& value = need(name);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() >= least && value.get<std::uint64_t>() <= most)
    return value.get<std::uint64_t>();
  refuse(name, fmt::format("is not a whole number from {} to {}", least, most));
}

const json& StrictObject::list(std::string_view name) {
  const json& value = need(name);
  if (!value.is_array()) refuse(name, "is not a list");
  return value;
}

std::vector<std::string> StrictObject::texts(std::string_view name) {
  std::vector<std::string> found;
  for (const auto& one : list(name)) {
    if (!one.is_string()) refuse(name, "has a member that is no text");
    found.push_back(one);
  }
  return found;
}

void StrictObject::pass_over(std::initializer_list<const char*> names) {
  for (const char* name : names) (void)optional(name);  // taken is enough: the value is not used
}

std::vector<std::string> StrictObject::rest() const {
  std::vector<std::string> names;
  for (auto field = object_.begin(); field != object_.end(); ++field) {
    if (std::ranges::find(taken_, std::string_view(field.key())) == taken_.end()) names.push_back(field.key());
  }
  return names;
}

void StrictObject::done() const {
  if (const auto unknown = rest(); !unknown.empty()) refuse(printable(unknown.front()), "is not a known field");
}

std::string StrictObject::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void StrictObject::refuse(std::string_view name, std::string what) const {
  throw InputError{path(name), std::move(what), hint_};
}

InputError located(const std::string& document, const InputError& error) {
  if (document.empty()) return error;
  const std::string where = error.where.empty() ? document : document + ": " + error.where;
  return {where, error.what, error.hint};
}

}  // namespace assay
