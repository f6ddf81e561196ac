// base64: RFC 4648, strict.
#include "reports/dossier/base64.h"

#include <array>
#include <cstdint>

namespace assay::dossier {
namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The six bits of each character of `alphabet`, and kNone of any other: a statement has hundreds of millions of them.
constexpr unsigned char kNone = 64;
constexpr std::array<unsigned char, 256> bits_of(std::string_view alphabet) {
  std::array<unsigned char, 256> bits = {};
  bits.fill(kNone);
  for (unsigned char i = 0; i < kNone; ++i) bits[static_cast<unsigned char>(alphabet[i])] = i;
  return bits;
}
constexpr auto kStandardBits = bits_of(kStandard), kUrlSafeBits = bits_of(kUrlSafe);

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) { return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U; };
    const std::uint32_t group = (at(0) << 16U) | (at(1) << 8U) | at(2);
    text += kStandard[(group >> 18U) & 63U];
    text += kStandard[(group >> 12U) & 63U];
    text += i + 1 < bytes.size() ? kStandard[(group >> 6U) & 63U] : '=';
    text += i + 2 < bytes.size() ? kStandard[group & 63U] : '=';
  }
  return text;
}

std::optional<std::string> base64_decoded(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  const bool standard = text.find('-') == std::string_view::npos && text.find('_') == std::string_view::npos;
  const auto& digits = standard ? kStandardBits : kUrlSafeBits;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const unsigned char digit = digits[static_cast<unsigned char>(c)];
    if (digit == kNone) return std::nullopt;
    group = (group << 6U) | digit;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>((group >> bits) & 0xffU);
    group &= (1U << bits) - 1;
  }
  if (group != 0) return std::nullopt;  // the unused low bits of the last character
  return bytes;
}

}  // namespace assay::dossier
