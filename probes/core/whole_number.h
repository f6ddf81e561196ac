// whole_number: a whole number that is all of a text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace assay {

/// `text` as a whole number of digits to `base`, with '-' before them where the type has a sign. Nothing if the text is
/// empty, has anything else, or is beyond the type.
template <class Number = std::int64_t>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace assay
