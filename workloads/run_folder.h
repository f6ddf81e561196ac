// run_folder: the directory of one run on storage that several nodes share, which no run leaves behind for long.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "probes/core/rendezvous.h"
#include "probes/core/units.h"

namespace assay {

/// A process, so that another on the same machine can tell whether it is still there.
struct FolderOwner {
  std::string boot;       ///< boot id of its machine; empty where the kernel tells none
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
/// Symbolic links are left alone. What cannot be removed stays.
int remove_abandoned(const std::string& directory);

/// The folder of this run. It is removed with all it holds by rank 0 at the end, and where any of its ranks fails after
/// the others have learned why: what they would miss then is no reason of theirs.
class RunFolder {
 public:
  /// Rank 0 removes abandoned folders and makes this run's, named by `nonce`; every rank then finds it, and a mark of
  /// the next rank in it. Throws std::runtime_error when a rank does not: the directory is not one storage; and
  /// std::system_error where it cannot be written to. All ranks call it.
  RunFolder(Rendezvous& group, const std::string& directory, std::uint64_t nonce);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Its absolute path.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Rank 0: abandoned folders that were removed before.
  [[nodiscard]] int abandoned() const { return abandoned_; }
  /// Every rank: rank 0 removes all files but the owner's mark; the others wait for it. How long it took rank 0.
  Seconds clear();

 private:
  void find(const std::string& directory, std::uint64_t nonce);

  Rendezvous& group_;
  std::string path_;
  int abandoned_ = 0;
  int uncaught_ = std::uncaught_exceptions();
};

/// A folder of this process alone, on storage of its own node; removed at its end, or by the next when it was killed.
class OwnFolder {
 public:
  /// Removes abandoned folders in `directory`, then makes one named by `nonce`. Throws std::system_error.
  OwnFolder(const std::string& directory, std::uint64_t nonce);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  /// Its absolute path.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay
