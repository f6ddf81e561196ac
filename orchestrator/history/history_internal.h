// history_internal: state of an open database; shared by the files that implement History.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/history/entries.h"
#include "orchestrator/history/history.h"
#include "orchestrator/history/sqlite.h"

namespace assay::history {

struct History::Internal {
  Internal(const std::string& file, bool write, bool create)
      : path(file), database(file, write, create), writable(write) {}

  std::string path;
  Database database;
  bool writable = false, simulated = false;
  bool replaying = false;     ///< additions are read from the files next to the database
  std::string beside = path;  ///< the database that those files belong to
  /// Numbers by name, filled when the first sweep is added.
  std::unordered_map<std::string, std::int64_t> units, metrics, cohorts;
  std::unordered_map<std::uint64_t, std::pair<std::int64_t, int>> series;  ///< by unit and metric: number, revision
  bool loaded = false;

  void check_schema(bool create, bool simulation);
  void load();
  /// Whether entries are kept in files: a simulation is made again from its seed.
  [[nodiscard]] bool keeps_entries() const { return !simulated && !replaying; }
  /// Writes an addition to a file next to the database, within the transaction that adds it.
  void keep_entry(const char* kind, const std::string& text) const;
  /// Path of the raw records of a sweep.
  [[nodiscard]] std::string raw_path(const std::string& run_sha256) const;
};

/// What `work` returns, or the failure that it throws.
template <class Work>
auto guarded(Work work) -> Result<decltype(work())> {
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const Broken& broken) {
    return std::unexpected(broken.failure);
  }
}

/// The value of a result; throws Broken if it is a failure.
template <class T>
T taken(Result<T> result) {
  if (!result) throw Broken(result.error());
  return std::move(*result);
}

/// Names the parts of `sweep`, also those in `asked`, by their places where their serial number is no identity: it
/// is in two places of the run, or was measured on another node in the same night. From then on every part that shows
/// it in a place that has named a unit is this unit: names do not depend on the order of runs. Gives the units as the
/// run shows them, by the index of their visits.
std::vector<std::pair<std::size_t, drift::Unit>> name_shared_by_place(const History::Internal& in, Sweep& sweep);

/// Days since 1970-01-01 of a night.
inline std::int64_t number_of(drift::Date date) { return date.time_since_epoch().count(); }
inline drift::Date date_of(std::int64_t number) { return drift::Date{std::chrono::days{number}}; }

/// JSON Lines as zstd with a checksum; `path` names the file in errors.
std::string compressed(const std::string& text, const std::string& path);
/// The text of the file `path`. Throws Broken, with exit code 4 if it is damaged.
std::string expanded(const std::string& path);

}  // namespace assay::history
