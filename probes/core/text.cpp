// text: checks and conversions of ASCII text, without a locale.
#include "probes/core/text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr std::size_t kLongestNodeName = 63;  // a label of a host name, RFC 1123

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && is_alphanumeric(text.front()) && has_only(text, "._-");
}

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::optional<Character> character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return Character{lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return std::nullopt;
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return std::nullopt;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return std::nullopt;
  return Character{code, bytes};
}

namespace {

struct Range {
  char32_t first, last;
};
/// Characters that a terminal obeys, or that change how their neighbours are shown, without being visible.
constexpr Range kHarmful[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x180E, 0x180E},   {0x200B, 0x200F},
    {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF},
};

}  // namespace

bool is_harmful(char32_t code) {
  return std::ranges::any_of(kHarmful, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

namespace {

/// The bytes of the control character that begins at `at`; 0 when none does.
std::size_t control_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(at) < 0x20) return text[at] == '\n' || text[at] == '\t' ? 0 : 1;
  if (byte(at) == 0x7F) return 1;
  return byte(at) == 0xC2 && at + 1 < text.size() && byte(at + 1) >= 0x80 && byte(at + 1) < 0xA0
             ? 2
             : 0;  // U+0080 to U+009F
}

/// Where to cut `text` so that at most `limit` bytes and only whole characters stay.
std::size_t cut_at(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80) --limit;
  return limit;
}

/// `text` with <U+…> and <0x…> for harmful characters; of line breaks and tabs, `kept` stay and the others become
/// blanks.
std::string escaped(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto character = character_at(text);
    const std::size_t bytes = character ? character->bytes : 1;
    if (!character) {
      shown += fmt::format("<0x{:02X}>", static_cast<unsigned char>(text.front()));
    } else if (text.front() == '\n' || text.front() == '\t') {
      shown += kept.contains(text.front()) ? text.front() : ' ';
    } else if (is_harmful(character->code)) {
      shown += fmt::format("<U+{:04X}>", static_cast<std::uint32_t>(character->code));
    } else {
      shown.append(text.substr(0, bytes));
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

}  // namespace

bool has_only(std::string_view text, std::string_view punctuation) {
  return std::ranges::all_of(text, [&](char c) { return is_alphanumeric(c) || punctuation.contains(c); });
}

bool is_plain_absolute_path(std::string_view text) {
  return text.starts_with('/') && has_only(text, "/._-+@:,=") && !text.contains("..");
}

bool is_run_id(std::string_view text) { return is_name(text, kMaxId); }

bool is_node_name(std::string_view text) { return is_name(text, kLongestNodeName); }

std::string printable(std::string_view text, std::size_t limit) {
  std::string clean(text.substr(0, limit));
  std::ranges::replace_if(
      clean, [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
  return clean;
}

std::string harmless(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return escaped(text, "");
  return escaped(text.substr(0, cut_at(text, limit)), "") + fmt::format("… ({} bytes)", text.size());
}

std::string harmless_page(std::string_view text) { return escaped(text, "\n\t"); }

std::string as_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ascii_json(std::string_view json) {
  constexpr char32_t kReplacement = 0xFFFD, kBeyond = 0x10000;
  std::string ascii;
  ascii.reserve(json.size());
  while (!json.empty()) {
    const Character character = character_at(json).value_or(Character{kReplacement, 1});
    const auto code = static_cast<std::uint32_t>(character.code);
    if (code < 0x7F) {
      ascii += json.front();
    } else if (code < kBeyond) {
      ascii += fmt::format("\\u{:04x}", code);
    } else {  // a pair of surrogates
      ascii +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - kBeyond) >> 10U), 0xDC00 + ((code - kBeyond) & 0x3FFU));
    }
    json.remove_prefix(character.bytes);
  }
  return ascii;
}

bool has_controls(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (control_at(text, i) > 0) return true;
  }
  return false;
}

std::string without_controls(std::string_view text, std::size_t limit) {
  std::string clean(text.substr(0, cut_at(text, limit)));
  for (std::size_t i = 0; i < clean.size();) {
    const auto character = character_at(std::string_view(clean).substr(i));
    const std::size_t bytes = character ? character->bytes : 1;
    if (!character || control_at(clean, i) > 0) clean.replace(i, bytes, bytes, '?');
    i += bytes;
  }
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
