// history: the database of nights: SQLite, schema assay.history/1. One writer, any number of readers, on a local disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/drift/fleet.h"
#include "orchestrator/drift/night.h"
#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::history {

/// The error and the exit code: 2 bad input (no database, another writer, a network file system, no space), 4 damaged
/// evidence (a corrupt database, or one of another schema).
struct Failure {
  InputError error;
  int exit_code = 2;
};

/// The exit codes of a Failure.
inline constexpr int kBadInput = 2, kDamaged = 4;

template <class T>
using Result = std::expected<T, Failure>;

/// Meaning of a sweep's figures.
enum class Origin { measured, simulated, imported };

constexpr auto words_of(Origin) { return names_as_words<Origin>(); }

/// All nights that there can be, to 9999-12-31.
constexpr drift::Date kFirstNight{std::chrono::days{0}}, kLastNight{std::chrono::days{2932896}};

/// A figure of a unit in a sweep.
struct Figure {
  drift::Metric metric;
  double value = 0;        ///< median of the attempts' medians, base unit
  double uncertainty = 0;  ///< standard uncertainty; 0: not known
  std::uint32_t samples = 0;
};

/// A unit in a sweep.
struct UnitVisit {
  drift::Unit unit;
  std::string cohort;
  drift::VisitState state = drift::VisitState::measured;
  bool retest = false;
  std::string boot = {}, partner = {}, reason = {};
  std::vector<Figure> figures;
};

/// By node and by probe that ended normally there, or found nothing to measure: the units that it read.
using Asked = std::map<std::string, std::map<std::string, std::set<std::string>>>;

/// One sweep, in the form in which it is added.
struct Sweep {
  std::string run_sha256;  ///< of its journal; a sweep that is there already changes nothing
  std::string started;     ///< UTC
  int utc_offset_s = 0;    ///< of the head's local time at the start
  drift::Date night = {};
  Origin origin = Origin::measured;
  std::string verdict;  ///< word of the run's verdict
  std::string label;    ///< name of profile and site
  std::vector<UnitVisit> visits;
  Asked asked = {};
  std::string raw;  ///< the run's records as JSON Lines, kept compressed next to the database; empty: none
};

/// Result of adding.
struct Added {
  bool already = false;
  drift::Date night = {};
  std::size_t visits = 0, values = 0, new_units = 0, events = 0;
};

/// How a database is opened.
enum class Access { read, write, create, create_simulation };

/// A sweep that was added.
struct SweepRow {
  std::string run_sha256, started, verdict, label, raw_sha256;  ///< raw_sha256 empty: none, or pruned
  drift::Date night = {};
  Origin origin = Origin::measured;
  std::size_t visits = 0, values = 0;
};

/// The last visits of a unit, for the list of due units.
struct LastVisit {
  std::string unit, node;
  std::optional<drift::Date> measured;  ///< absent: never
  drift::Date first_known = {};
  drift::Date visited = {};
  drift::VisitState state = drift::VisitState::not_measured;  ///< of the last visit of any kind
};

/// Why no database may be on a file system of this magic number (statfs(2)); nothing if it may.
std::optional<std::string> unfit_file_system(std::uint64_t magic);

/// The local date at `started` minus 12 hours, by `utc_offset_s`.
drift::Date night_of(std::chrono::system_clock::time_point started, int utc_offset_s);

/// The files from which a database was remade.
struct Remade {
  std::size_t sweeps = 0, events = 0, baselines = 0;
  std::string old;  ///< path of the database from before, if there was one
};

/// Makes the database `path` again from the sweeps, events and baselines next to it, in their order. The present one,
/// damaged or not, becomes "PATH.old"; after an error it is unchanged.
Result<Remade> remake(const std::string& path);

class History {
 public:
  static Result<History> open(const std::string& path, Access access);
  History(History&&) noexcept;
  History& operator=(History&&) noexcept;
  ~History();

  [[nodiscard]] bool simulated() const;
  /// Adds a sweep whole or not at all. A sweep of another origin than the database's is kept out of drift: simulated
  /// and imported figures are refused unless the database is a simulation.
  Result<Added> add(Sweep sweep);
  Result<void> add_event(const drift::Event& event);

  /// Units, metrics, series and cohorts, in the order of their numbers.
  Result<drift::Fleet> fleet() const;
  /// Calls `each` for every night from `from` to `to` in ascending order.
  Result<void> nights(drift::Date from, drift::Date to, const std::function<void(drift::Night)>& each) const;
  /// The figures of an accepted run become the fleet's baseline. Gives the number of series.
  Result<std::size_t> set_baseline(const Sweep& acceptance, const std::string& who);
  /// Removes the raw records of sweeps before `before`; the figures stay. Gives the number of sweeps.
  Result<std::size_t> prune(drift::Date before);
  Result<std::vector<SweepRow>> sweeps() const;
  Result<std::vector<drift::Event>> events() const;
  /// The newest night up to `last` of which there is a sweep; nothing if there is none.
  Result<std::optional<drift::Date>> newest_night(drift::Date last) const;
  /// Every figure as CSV: night, unit, metric, value, samples, state, re-test, run; given piece by piece.
  Result<void> export_csv(const std::function<void(std::string_view)>& write) const;
  Result<std::vector<LastVisit>> last_visits() const;
  /// Whether a unit has this id, or a node had this name in any night.
  Result<bool> knows(const std::string& unit_or_node) const;

  /// The saved state of the detector under a policy, and the last night in it; nothing if there is none.
  struct Saved {
    drift::Date night = {};
    std::string bytes;
  };
  Result<std::optional<Saved>> saved(const std::string& policy_sha256) const;
  Result<void> save(const std::string& policy_sha256, const Saved& state);
  Result<void> forget_saved();
  /// From now on additions come from the files next to `database`, which are not written again.
  void replay_into(const std::string& database);

  struct Internal;

 private:
  explicit History(std::unique_ptr<Internal> inside);
  std::unique_ptr<Internal> inside_;
};

}  // namespace assay::history
