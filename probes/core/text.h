// text: names and foreign text: characters allowed in a file name, harmless output, and bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// The longest id of a run; a step's id with attempt and rank stays below 200 characters.
inline constexpr std::size_t kMaxId = 200;

/// Whether `text` has nothing but ASCII letters, digits and characters of `punctuation`; true for an empty one.
bool has_only(std::string_view text, std::string_view punctuation);

/// Whether `text` is an absolute path of letters, digits and /._-+@:,= without "..": neither a shell, nor a unit file,
/// nor a scheduler takes it apart.
bool is_plain_absolute_path(std::string_view text);

/// True for [A-Za-z0-9][A-Za-z0-9._-]*, at most kMaxId long: safe as a part of a file name.
bool is_run_id(std::string_view text);

/// True for [A-Za-z0-9][A-Za-z0-9._-]*, at most 63 characters: a node's name in a site.
bool is_node_name(std::string_view text);

/// A character and its bytes in UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

/// The character at the front of `text`, which has one, by RFC 3629: no overlong form, no surrogate. Nothing if there
/// is none.
std::optional<Character> character_at(std::string_view text);

/// Whether a terminal obeys this character, or it changes how its neighbours are shown, without being visible.
bool is_harmful(char32_t code);

/// `text` for logs and reasons: printable ASCII only, everything else '?', at most `limit` characters.
std::string printable(std::string_view text, std::size_t limit = 500);

/// The longest text from outside that one line shows, in bytes.
inline constexpr std::size_t kLongestShown = 4096;

/// Text from outside as one line that a terminal shows and does not obey: line breaks and tabs become blanks; C0 and C1
/// controls, DEL, bidirectional controls and other invisible marks become <U+001B>, bytes that are not UTF-8 <0xFF>.
/// Text over `limit` bytes is cut, with its length added.
std::string harmless(std::string_view text, std::size_t limit = kLongestShown);

/// The same for a page of our own, whose line breaks stay, of any length. Every part that comes from outside must have
/// been made harmless() before, or it could begin lines of its own.
std::string harmless_page(std::string_view text);

/// `text` with & < > " as entities: content of an element, or a quoted attribute, of HTML and XML. What comes from
/// outside must have been made harmless() before: XML 1.0 has no form for control characters.
std::string as_markup(std::string_view text);

/// JSON that is valid in the same way and ASCII: everything else, and DEL, as \\u and four digits.
std::string ascii_json(std::string_view json);

/// Whether UTF-8 `text` has a C0 or C1 control or DEL, other than line breaks and tabs. No text of a record has one.
bool has_controls(std::string_view text);

/// `text` with '?' for each byte of such a character and for each that is not UTF-8, cut to at most `limit` bytes
/// between two characters.
std::string without_controls(std::string_view text, std::size_t limit);

/// `bytes` as lower-case hexadecimal digits, two a byte.
std::string to_hexadecimal(std::string_view bytes);

/// The bytes of to_hexadecimal; nothing for any other text.
std::optional<std::string> from_hexadecimal(std::string_view digits);

}  // namespace assay
