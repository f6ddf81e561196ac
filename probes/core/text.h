// text: names and foreign text: what may be part of a file name, what may be printed, and bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// The longest id of a run; a step's id with attempt and rank stays below 200 characters.
inline constexpr std::size_t kMaxId = 200;

/// True for [A-Za-z0-9][A-Za-z0-9._-]*, at most kMaxId long: safe as a part of a file name.
bool is_run_id(std::string_view text);

/// True for [A-Za-z0-9][A-Za-z0-9._-]*, at most 63 characters: a node's name in a site.
bool is_node_name(std::string_view text);

/// `text` for logs and reasons: printable ASCII only, everything else '?', at most `limit` characters.
std::string printable(std::string_view text, std::size_t limit = 500);

/// `bytes` as lower-case hexadecimal digits, two a byte.
std::string to_hexadecimal(std::string_view bytes);

/// The bytes of to_hexadecimal; nothing for any other text.
std::optional<std::string> from_hexadecimal(std::string_view digits);

}  // namespace assay
