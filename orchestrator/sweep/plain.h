// plain: texts that neither a shell nor a unit file takes apart.
#pragma once

#include <algorithm>
#include <string_view>

namespace assay::sweep {

/// Whether `text` has nothing but letters, digits and what is in `punctuation`.
inline bool has_only(std::string_view text, std::string_view punctuation) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || punctuation.contains(c);
  });
}

/// Whether `text` is an absolute path of such characters.
inline bool is_plain_path(std::string_view text) { return text.starts_with('/') && has_only(text, "/._-+@:,="); }

}  // namespace assay::sweep
