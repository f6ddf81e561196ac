// named_values: splits at commas, then at the first equals sign.
#include "orchestrator/plan/named_values.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "probes/core/suggest.h"

namespace assay::plan {

std::expected<std::map<std::string_view, std::string_view>, InputError> named_values(
    std::string_view text, std::span<const std::string_view> names, const std::string& where, const std::string& hint) {
  std::map<std::string_view, std::string_view> values;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    if (std::ranges::find(names, name) == names.end())
      return std::unexpected(
          InputError{where, fmt::format("'{}' is none of its numbers", name),
                     suggestion(std::string(name), std::vector<std::string>(names.begin(), names.end()))});
    const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
    if (value.empty())
      return std::unexpected(InputError{where, fmt::format("'{}' is not a number of {}", entry, name), hint});
    if (!values.emplace(name, value).second)
      return std::unexpected(InputError{where, fmt::format("{} is given twice", name), hint});
  }
  return values;
}

std::expected<double, InputError> named_number(std::string_view name, std::string_view text, const std::string& where,
                                               const std::string& hint) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc{} && read.ptr == text.data() + text.size()) return number;
  return std::unexpected(InputError{where, fmt::format("'{}={}' is not a number of {}", name, text, name), hint});
}

}  // namespace assay::plan
