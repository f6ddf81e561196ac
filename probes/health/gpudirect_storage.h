// gpudirect_storage: whether cuFile moves data between storage and GPU past the host's memory, or through it.
#pragma once

#include <optional>
#include <string>

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// A machine's cuFile configuration; no data is transferred.
struct GpudirectStorage {
  std::string library;         ///< path of libcufile
  std::optional<bool> direct;  ///< false: compatibility mode, or refused; absent if only a load can show it
  std::string state;           ///< in words, with the reason
};

/// The configuration of this machine; nothing if libcufile is not installed. Its configuration is that of
/// etc/cufile.json; a process may name another one in its environment (CUFILE_ENV_PATH_JSON).
std::optional<GpudirectStorage> read_gpudirect_storage(const MachineTree& tree);

}  // namespace assay::health
