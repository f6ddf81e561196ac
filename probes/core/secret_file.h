// secret_file: files with credentials, which only their owner may read, and files that decide, which only their owner
// may change.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>

#include "probes/core/error.h"

namespace assay {

/// The bytes of the file at `path`, 64 KiB at most. Refused: no regular file, a file that belongs to neither this user
/// (under sudo: the caller) nor root, one that others than its owner may read or write. Errors name the path and never
/// the content.
std::expected<std::string, InputError> read_secret_file(const std::string& path);

/// The bytes of the file at `path`, by whose word something is measured, judged, trusted or drained. Refused: what
/// check_deciding_file refuses, no regular file, more than `max_bytes`.
std::expected<std::string, InputError> read_deciding_file(const std::string& path,
                                                          std::size_t max_bytes = kLargestDocument);

/// An error for a file or folder that another user can change: it, or a link at `path`, belongs to neither this user
/// (under sudo: the caller) nor root, or others may write to it. A group whose only member is the owner is no other. So
/// ssh treats its configuration (with Debian's rule of groups, because of umask 002), and git a repository's under
/// sudo. Nothing if there is no such file: reading it says so.
std::optional<InputError> check_deciding_file(const std::string& path);

}  // namespace assay
