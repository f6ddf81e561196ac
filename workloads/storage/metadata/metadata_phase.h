// metadata_phase: all ranks of a group make, look at, rename and remove small files on one storage from a common start.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/core/words.h"
#include "workloads/storage/shared/stonewall.h"

namespace assay::cluster_storage {

/// Files of all streams of one set.
struct MetadataLayout {
  bool shared = false;        ///< one directory for all streams; else one each
  std::uint64_t streams = 1;  ///< of all ranks
  std::uint64_t files = 0;    ///< of each stream
};

/// The directory of `stream` in the set of this number.
std::string metadata_folder(const MetadataLayout& layout, std::uint64_t set, std::uint64_t stream);

/// The name of file `index` of `stream`, as it was made or as it is called after it was renamed.
std::string metadata_file(std::uint64_t stream, std::uint64_t index, bool renamed);

/// A listing of the directory of `stream` in which every file must be there once, by its new name.
class ListingCheck {
 public:
  ListingCheck(const MetadataLayout& layout, std::uint64_t stream);
  /// Takes one name of the listing in, "." and ".." not among them.
  void add(std::string_view name);
  /// Names that were not expected, came twice, or did not come.
  [[nodiscard]] std::uint64_t errors() const { return unknown_ + twice_ + missing_; }
  /// The same in words; empty if there are none.
  [[nodiscard]] std::string text() const;

 private:
  std::uint64_t first_stream_, files_;
  std::vector<bool> seen_;  ///< by stream from first_stream_ on, then by index
  std::uint64_t unknown_ = 0, twice_ = 0, missing_;
  std::string first_unknown_;
};

/// Work of the streams of a phase.
enum class MetadataMove { create, stat, read, rename, readdir, unlink };

constexpr auto words_of(MetadataMove) { return names_as_words<MetadataMove>(); }

/// Settings of all phases of a run. Rank r has the streams from r x threads on.
struct MetadataSettings {
  std::string folder;  ///< shared by all ranks
  MetadataLayout layout;
  std::size_t threads = 1;  ///< of each rank
  std::size_t size = 0;     ///< B of each file
  int shift = 1;            ///< all but create is done on files of the rank so many before
  std::uint64_t nonce = 0;
};

/// Work of one rank in a phase.
struct MetadataClient {
  double time_s = 0;                  ///< from the common start until its last operation was over
  double operations = 0;              ///< of readdir: names that it was given
  std::optional<double> latency_p99;  ///< s, of one operation; of readdir: of one directory
  std::uint64_t failures = 0;         ///< operations that the storage refused
  std::uint64_t wrong = 0;            ///< that it answered with something that is not so
  std::string first_bad;              ///< the first of either
};

/// Results of a phase, the same on every rank.
struct MetadataTaken {
  double start_spread_s = 0;
  std::vector<MetadataClient> clients;  ///< by rank
};

/// Runs phases; every rank makes the same calls.
class MetadataGroup {
 public:
  MetadataGroup(Rendezvous& group, const MetadataSettings& settings) : group_(group), settings_(settings) {}
  /// Makes the directories of a set; all ranks have theirs when it returns. Throws std::system_error.
  void prepare(std::uint64_t set);
  /// One phase on the files of a set. Refusals of the storage are counted, not thrown.
  MetadataTaken run(MetadataMove move, std::uint64_t set);

 private:
  struct ThreadPart;
  [[nodiscard]] std::uint64_t stream_of(std::size_t part) const;
  void work(MetadataMove move, std::uint64_t set, ThreadPart& part) const;
  void list(ThreadPart& part) const;

  Rendezvous& group_;
  MetadataSettings settings_;
  std::atomic<bool> abandoned_ = false;  ///< another rank has ended early
};

}  // namespace assay::cluster_storage
