// new_file: files and folders that appear whole or not at all, and never over something else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "probes/core/error.h"

namespace assay::dossier {

/// Creates `path` with `bytes` and `mode`, fsynced; an error when anything is there already (also a dangling link).
std::optional<InputError> write_new_file(const std::string& path, std::string_view bytes, mode_t mode);

/// Replaces `path` by a file with `bytes` (mode 0644) through a neighbour and a rename, so that a reader sees one or
/// the other whole.
std::optional<InputError> replace_file(const std::string& path, std::string_view bytes);

/// Removes a file that this process made; one that is gone already is no error.
void remove_file(const std::string& path);

/// Renames the folder `from` to `to`, which must not exist, and fsyncs their parent.
std::optional<InputError> publish_folder(const std::string& from, const std::string& to);

}  // namespace assay::dossier
