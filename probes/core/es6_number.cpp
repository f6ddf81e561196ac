// es6_number: the shortest digits from std::to_chars, laid out by the rules of ECMA-262.
#include "probes/core/es6_number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace assay {

std::string es6_number(double number) {
  if (number == 0) return "0";  // also -0
  std::array<char, 32> buffer = {};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(number), std::chars_format::scientific).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const auto e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const auto from = text.substr(e + (text[e + 1] == '+' ? 2 : 1));
  std::from_chars(from.data(), from.data() + from.size(), exponent);
  // ECMA-262, Number::toString: k digits, and the point is after the first n of them.
  const int k = static_cast<int>(digits.size());
  const int n = exponent + 1;
  constexpr int kMostFixedDigits = 21;
  constexpr int kMostLeadingZeros = 6;
  std::string out = number < 0 ? "-" : "";
  if (k <= n && n <= kMostFixedDigits) return out + digits + std::string(static_cast<std::size_t>(n - k), '0');
  if (0 < n && n <= kMostFixedDigits) return out + digits.insert(static_cast<std::size_t>(n), 1, '.');
  if (-kMostLeadingZeros < n && n <= 0) return out + "0." + std::string(static_cast<std::size_t>(-n), '0') + digits;
  if (k > 1) digits.insert(1, 1, '.');
  return out + fmt::format("{}e{}{}", digits, n > 0 ? '+' : '-', std::abs(n - 1));
}

}  // namespace assay
