// own_folder: folders with data of a probe, marked with their owner: those of a probe that was killed, the next
// removes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "probes/core/units.h"

namespace assay {

/// A process, so that another on the same machine can check whether it is alive.
struct FolderOwner {
  std::string boot;       ///< boot id of its machine; empty if the kernel reports none
  std::string processes;  ///< its process namespace
  std::int64_t pid = 0;
  std::string started;  ///< its start, in ticks after boot
  friend bool operator==(const FolderOwner&, const FolderOwner&) = default;
};

/// The owner as one line, and back; nothing for any other text.
std::string owner_text(const FolderOwner& owner);
std::optional<FolderOwner> owner_in(const std::string& text);

/// This process.
FolderOwner this_process();

/// Every run has been killed by then: twice the deadline of the probe.
inline constexpr Seconds kAbandonedAfter = {2.0 * 3600};

/// Whether a folder of `owner`, last changed `age` ago by the clock of the storage, is of a run that is no more: `self`
/// can see that its owner is gone, or it is older than kAbandonedAfter.
bool is_abandoned(const std::optional<FolderOwner>& owner, const FolderOwner& self, Seconds age);

/// Removes every folder in `directory` that is named as one of a run, belongs to this user and is abandoned; how many.
/// Symbolic links are kept. Files that cannot be removed stay.
int remove_abandoned(const std::string& directory);

/// The path of the folder in `directory` that `nonce` names.
std::string folder_path(const std::string& directory, std::uint64_t nonce);

/// The file in each folder that names its owner.
inline constexpr const char* kOwnerFile = "owner";

/// Writes `text` and a line's end. Throws std::system_error.
void write_mark(const std::string& path, const std::string& text);

/// Removes a folder of which others may still be making files; gives up after 20 s.
void remove_folder(const std::string& path) noexcept;

/// A folder only of this process, on storage of its own node; removed at its end, or by the next when it was killed.
class OwnFolder {
 public:
  /// Removes abandoned folders in `directory`, then makes one named by `nonce`, or by chance. Throws std::system_error.
  OwnFolder(const std::string& directory, std::uint64_t nonce);
  explicit OwnFolder(const std::string& directory);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  /// Its absolute path.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay
