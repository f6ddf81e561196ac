// state: files of a user of assay between runs.
#pragma once

#include <string>

namespace assay::files {

/// Path of this machine's own signing key in the user's state directory ($XDG_STATE_HOME, or ~/.local/state); its
/// public half has .pub behind. `assay accept` makes it on first use.
std::string machine_key_path();

}  // namespace assay::files
