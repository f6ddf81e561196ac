// parameters: typed reading of probe parameters.
#include "probes/core/parameters.h"

#include <ranges>

#include <fmt/format.h>

#include "probes/core/whole_number.h"

namespace assay {
namespace {

bool is_choice(std::string_view choices, std::string_view text) {
  for (const auto word : choices | std::views::split(' ')) {
    if (std::string_view(word.begin(), word.end()) == text) return true;
  }
  return false;
}

template <class T>
const T& as(const Value& value, std::string_view name) {
  if (const T* typed = std::get_if<T>(&value)) return *typed;
  throw std::logic_error(fmt::format("parameter '{}' has another type", name));
}

}  // namespace

Value parse_parameter(const Parameter& parameter, std::string_view text) {
  const auto refuse = [&](std::string_view expected) {
    return BadParameter(fmt::format("{}: '{}' is not {}", parameter.name, text, expected));
  };
  if (parameter.unit.empty()) {
    if (parameter.choices.empty() || is_choice(parameter.choices, text)) return std::string(text);
    throw refuse(fmt::format("one of: {}", parameter.choices));
  }
  if (parameter.unit == "B") {
    if (const auto bytes = parse_bytes(text)) return static_cast<std::int64_t>(bytes->count);
    throw refuse("a size such as 4096, 64KiB or 1GiB");
  }
  if (parameter.unit == "s") {
    if (const auto seconds = parse_seconds(text)) return seconds->count;
    throw refuse("a duration such as 10s, 250ms or 2min");
  }
  const auto number = whole_number(text);
  if (!number || *number < 0) throw refuse("a whole number");
  return *number;
}

const Value& Parameters::find(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) throw std::logic_error(fmt::format("no parameter '{}' in the spec", name));
  return found->second;
}

const std::string& Parameters::text(std::string_view name) const { return as<std::string>(find(name), name); }
std::int64_t Parameters::count(std::string_view name) const { return as<std::int64_t>(find(name), name); }
std::int64_t Parameters::count(std::string_view name, std::int64_t least, std::int64_t most) const {
  const std::int64_t value = count(name);
  if (value < least || value > most)
    throw BadParameter(fmt::format("{}: {} is not from {} to {}", name, value, least, most));
  return value;
}

Bytes Parameters::bytes(std::string_view name) const {
  return {static_cast<std::uint64_t>(as<std::int64_t>(find(name), name))};
}
Seconds Parameters::seconds(std::string_view name) const { return {as<double>(find(name), name)}; }

}  // namespace assay
