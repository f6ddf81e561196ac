// state: the XDG state directory.
#include "orchestrator/files/state.h"

#include <cstdlib>
#include <filesystem>

namespace assay::files {

std::string machine_key_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path base = state != nullptr && *state != '\0'
                                         ? std::filesystem::path(state)
                                         : std::filesystem::path(home != nullptr ? home : "/root") / ".local/state";
  return base / "assay/machine.key";
}

}  // namespace assay::files
