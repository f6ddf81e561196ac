// text: checks and conversions of ASCII text, without a locale.
#include "probes/core/text.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::size_t kLongestNodeName = 63;  // a label of a host name, RFC 1123

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && is_alphanumeric(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

bool is_run_id(std::string_view text) { return is_name(text, kMaxId); }

bool is_node_name(std::string_view text) { return is_name(text, kLongestNodeName); }

std::string printable(std::string_view text, std::size_t limit) {
  std::string clean(text.substr(0, limit));
  std::ranges::replace_if(
      clean, [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
  return clean;
}

std::string to_hexadecimal(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xFU];
  }
  return text;
}

std::optional<std::string> from_hexadecimal(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto high = kDigits.find(digits[i]), low = kDigits.find(digits[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

}  // namespace assay
