// error: an error of an input with its place and a hint; reading a file.
#pragma once

#include <cstddef>
#include <expected>
#include <string>

namespace assay {

/// Error, place, and a hint. Printed as "where: what" and, on its own line, "hint: …".
struct InputError {
  std::string where;  ///< coordinates in the input: "profiles/h200.json: requirements[3].limit.unit" or "line 4"
  std::string what;
  std::string hint;

  /// Both lines, without a final newline. Quotes of the input are made harmless (text.h).
  [[nodiscard]] std::string text() const;
};

/// Bytes of the largest document that is read: of 10,000 nodes and 30 requirements the plan has 90 MB, the verdict 230
/// MB.
inline constexpr std::size_t kLargestDocument = 256 << 20;

/// Reads a whole regular file of at most `max_bytes`. Errors name the path and the cause.
std::expected<std::string, InputError> read_file(const std::string& path, std::size_t max_bytes = kLargestDocument);

}  // namespace assay
