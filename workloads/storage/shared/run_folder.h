// run_folder: the directory of one run on storage that several nodes share, which no run leaves behind for long.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "probes/core/own_folder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/units.h"

namespace assay::cluster_storage {

/// The folder of this run. It is removed with all it holds by rank 0 at the end, and where any of its ranks fails after
/// the others have learned why: so they report no missing files.
class RunFolder {
 public:
  /// Rank 0 removes abandoned folders and makes this run's, named by `nonce`; every rank then finds it, and a mark of
  /// the next rank in it. Throws std::runtime_error when a rank does not: the directory is not one storage; and
  /// std::system_error if it cannot be written to. All ranks call it.
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

}  // namespace assay::cluster_storage
