// own_folder: the folder that a command writes to must be the caller's own, or another user of the machine chooses its
// content.
#pragma once

#include <optional>
#include <string>

#include "probes/core/error.h"

namespace assay::files {

/// Nothing if `path` is a folder that belongs to this user and that no other user may write to. A link is followed only
/// when it is this user's own. The error has the cause and a remedy.
std::optional<InputError> check_own_folder(const std::string& path);

/// Makes the folder `path`, and its parents as far as they are missing, or takes an existing one that is empty and
/// passes check_own_folder.
std::optional<InputError> take_own_folder(const std::string& path);

/// Makes the folder `path`, which must not exist, only for this user (0700): for a name that others can guess.
std::optional<InputError> make_private_folder(const std::string& path);

}  // namespace assay::files
