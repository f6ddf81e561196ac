// secret_file: files with credentials, which only their owner may read, and files that decide, which only their owner
// may change.
#pragma once

#include <cstddef>
#include <expected>
#include <string>

#include "probes/core/error.h"

namespace assay {

/// The bytes of the file at `path`, 64 KiB at most. Refused: no regular file, a file that belongs to neither this user
/// nor root, one that others than its owner may read or write. Errors name the path and never the content.
std::expected<std::string, InputError> read_secret_file(const std::string& path);

/// The bytes of the file at `path`, by whose word something is done without a person. Refused: a link, no regular file,
/// a file that belongs to neither this user nor root, one that others than its owner may write, more than `max_bytes`.
std::expected<std::string, InputError> read_deciding_file(const std::string& path, std::size_t max_bytes);

}  // namespace assay
