// party_name: a short form of the skeletons of Unicode UTS 39, without its tables; other look-alikes are refused.
//
//   "Example AG", "EXAMPLE AG.", "Exаmple AG" (Cyrillic а), "Example  AG"  ->  "example ag"
#include "reports/dossier/party_name.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::dossier {
namespace {

struct Range {
  char32_t first, last;
};

template <std::size_t n>
bool in(const Range (&ranges)[n], char32_t code) {
  return std::ranges::any_of(ranges, [&](const Range& one) { return code >= one.first && code <= one.last; });
}

constexpr Range kBlanks[] = {{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x2000, 0x200A}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
/// Accents that follow their letter, and selectors of its form.
constexpr Range kMarks[] = {{0x300, 0x36F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                            {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
/// Forms of other characters: of phonetics, in circles, ligatures, of mathematics, with dots of Latin Extended-B.
constexpr Range kForms[] = {{0x180, 0x2FF},   {0x1D00, 0x1DBF}, {0x2070, 0x209F},   {0x2100, 0x214F},  {0x2160, 0x218F},
                            {0x2460, 0x24FF}, {0xFB00, 0xFB4F}, {0x1D400, 0x1D7FF}, {0x1F100, 0x1F1FF}};
/// Alphabets with letters like those of Latin: Greek, Cyrillic, Armenian, Georgian, Cherokee, Coptic, Lisu.
constexpr Range kAlphabets[] = {{0x370, 0x3FF},   {0x400, 0x52F},   {0x530, 0x58F},   {0x10A0, 0x10FF},
                                {0x13A0, 0x13FF}, {0x1C80, 0x1CBF}, {0x1F00, 0x1FFF}, {0x2C80, 0x2CFF},
                                {0x2DE0, 0x2DFF}, {0xA4D0, 0xA4FF}, {0xA640, 0xA69F}, {0xAB70, 0xABBF}};

/// Letters of Latin without their accents, from U+00C0 to U+017F.
constexpr char32_t kLatin = 0xC0;
constexpr std::string_view kLatinBase =
    "aaaaaaaceeeeiiiidnoooooxouuuuypsaaaaaaaceeeeiiiidnooooo-ouuuuypy"
    "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuu"
    "uuwwyyyzzzzzzs";
/// The same from U+1E00.
constexpr char32_t kLatinMore = 0x1E00;
constexpr std::string_view kLatinMoreBase =
    "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopp"
    "pprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwyassssdaaaaaaaaaaaa"
    "aaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyllvvyy";
/// Latin letters like those of Greek from U+0391 and of Cyrillic from U+0400, of which one case looks so; a blank:
/// none.
constexpr char32_t kGreek = 0x391, kCyrillic = 0x400;
constexpr std::string_view kLikeGreek = "ab  ezh ik mn o p  ty x         ab  ezh ik mn o p  ty x  ";
constexpr std::string_view kLikeCyrillic =
    "ee   siij   k y a b  e    k mho pcty x          a b  e    k mho pcty x          ee   siij   k y ";

char letter(std::string_view table, char32_t first, char32_t code) {
  return code >= first && code - first < table.size() ? table[code - first] : ' ';
}

/// The lower case of a letter of Greek or Cyrillic; other characters as they are.
char32_t lower(char32_t code) {
  constexpr char32_t kCase = 0x20, kOldCase = 0x50;
  if ((code >= 0x391 && code <= 0x3A9) || (code >= 0x410 && code <= 0x42F)) return code + kCase;
  return code >= 0x400 && code <= 0x40F ? code + kOldCase : code;
}

/// What `code`, which is no blank and no mark, looks like: an ASCII character, or the character itself.
char32_t look(char32_t code) {
  constexpr char32_t kWide = 0xFF01, kLastWide = 0xFF5E;
  if (code >= kWide && code <= kLastWide) code = code - kWide + '!';
  if (code >= 'A' && code <= 'Z') return code - 'A' + 'a';
  for (const char like : {letter(kLatinBase, kLatin, code), letter(kLatinMoreBase, kLatinMore, code),
                          letter(kLikeGreek, kGreek, code), letter(kLikeCyrillic, kCyrillic, code)}) {
    if (like != ' ') return static_cast<unsigned char>(like);
  }
  return lower(code);
}

/// One character in UTF-8, or as its number: the result is compared and never shown.
std::string text_of(char32_t code) {
  return code < 0x80 ? std::string(1, static_cast<char>(code))
                     : fmt::format("<{:X}>", static_cast<std::uint32_t>(code));
}

}  // namespace

std::expected<std::string, std::string> comparable_name(std::string_view name) {
  std::string key;
  bool latin = false, other = false;  // letters of the word so far
  while (!name.empty()) {
    const auto character = character_at(name);
    if (!character) return std::unexpected("is not UTF-8");
    name.remove_prefix(character->bytes);
    const char32_t code = character->code;
    if (in(kBlanks, code)) {
      latin = other = false;
      if (!key.empty() && key.back() != ' ') key += ' ';
      continue;
    }
    if (in(kMarks, code) || is_harmful(code) || code == '.' || code == ',') continue;
    if (in(kForms, code))
      return std::unexpected(
          fmt::format("has the character U+{:04X}, a form of another one", static_cast<std::uint32_t>(code)));
    const char32_t seen = look(code);
    other = other || in(kAlphabets, code);
    latin = latin || (!in(kAlphabets, code) && seen >= 'a' && seen <= 'z');
    if (latin && other) return std::unexpected("has a word with letters of two alphabets");
    key += text_of(seen);
  }
  while (key.ends_with(' ')) key.pop_back();
  if (key.empty()) return std::unexpected("has no character that is seen");
  return key;
}

}  // namespace assay::dossier
