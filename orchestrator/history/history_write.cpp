// history_write: everything that changes the database, each in one transaction.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/files/exit_codes.h"
#include "orchestrator/history/history_internal.h"
#include "orchestrator/history/missing_parts.h"
#include "orchestrator/history/packed_figures.h"
#include "probes/core/statistics.h"

namespace assay::history {
namespace {

std::string label_of(drift::VisitState state) { return std::string(word_of(state)); }

/// How the column "cumulative" holds the course of a count (history.cpp reads it).
std::int64_t column_of(Course course) {
  constexpr std::int64_t kForLife = 2;
  return course == Course::for_life ? kForLife : course == Course::since_boot ? 1 : 0;
}

/// Why the figures of a sweep may not be added; nothing if they may.
std::optional<InputError> unfit_sweep(const Sweep& sweep, bool simulated) {
  if (!files::is_sha256(sweep.run_sha256))
    return InputError{"run", "has no SHA-256", "the journal of the run is damaged"};
  if (!simulated && sweep.origin != Origin::measured)
    return InputError{sweep.run_sha256, fmt::format("is {}, and this is a history of measurements", sweep.origin),
                      "a simulation has a database of its own: `assay simulate --nights N --db NEW`"};
  for (const UnitVisit& visit : sweep.visits) {
    if (visit.unit.id.empty()) return InputError{sweep.run_sha256, "has a unit without identity", ""};
    for (const Figure& figure : visit.figures) {
      if (!std::isfinite(figure.value))
        return InputError{visit.unit.id, figure.metric.name + " is not a number", "the record is damaged"};
    }
  }
  return std::nullopt;
}

/// SHA-256 of the file, empty if it is not there: raw records are pruned.
std::string digest_of_file(const std::string& path) {
  const auto bytes = read_file(path);
  return bytes ? files::sha256(*bytes) : "";
}

void exchange(Sweep& sweep, std::vector<std::pair<std::size_t, drift::Unit>>& units) {
  for (auto& [visit, unit] : units) std::swap(sweep.visits[visit].unit, unit);
}

/// Adds the parts of a sweep, and counts the new ones.
class Adder {
 public:
  Adder(History::Internal& in, const Sweep& sweep, Added& added) : in_(in), sweep_(sweep), added_(added) {}

  /// A node that was not measured has no serial numbers: its known units are all not measured. The unit without a
  /// serial number of its first sweep, if that did not measure it, is none of them.
  std::vector<UnitVisit> units_of(const UnitVisit& given) {
    std::vector<UnitVisit> all;
    if (!given.partner.empty()) return {at_its_node(given)};
    if (given.state == drift::VisitState::measured || given.unit.kind != "node" || given.unit.serial) return {given};
    for (known_.with(given.unit.node); known_.step();) {
      all.push_back(given);
      all.back().unit = {.id = known_.text(0),
                         .kind = known_.text(1),
                         .serial = known_.whole(2) != 0,
                         .node = given.unit.node,
                         .slot = known_.text(3),
                         .leaf = known_.text(4),
                         .rack = known_.text(5)};
    }
    return all.empty() ? std::vector<UnitVisit>{given} : all;
  }

  /// A run of only two nodes may lack their serial numbers: the visit is of the unit that is known as the node.
  UnitVisit at_its_node(const UnitVisit& given) {
    if (given.unit.serial) return given;
    if (nodes_.empty()) {
      Statement row(in_.database, "SELECT name,serial,slot,leaf,rack,node FROM unit WHERE kind='node' ORDER BY id");
      while (row.step())
        nodes_[row.text(5)] = {.id = row.text(0),
                               .kind = "node",
                               .serial = row.whole(1) != 0,
                               .node = row.text(5),
                               .slot = row.text(2),
                               .leaf = row.text(3),
                               .rack = row.text(4)};
    }
    const auto found = nodes_.find(given.unit.node);
    UnitVisit visit = given;
    if (found != nodes_.end()) visit.unit = found->second;
    return visit;
  }

  void add(const UnitVisit& given, std::int64_t sweep_id) {
    const std::int64_t unit = unit_number(given.unit);
    std::string state = label_of(given.state);
    std::vector<PackedFigure> figures;
    std::set<std::int64_t> known;
    for (const Figure& figure : given.figures) {
      const std::int64_t series = series_number(unit, figure.metric, given.unit.id);
      if (known.insert(series).second)
        figures.push_back({.series = series, .value = figure.value, .samples = figure.samples});
    }
    std::ranges::sort(figures, {}, &PackedFigure::series);
    const std::string bytes = packed(figures);
    visit_
        .with(number_of(sweep_.night), unit, cohort_number(given.cohort), sweep_id, state, given.retest,
              given.unit.node, given.unit.slot, given.boot, given.partner, given.reason,
              static_cast<std::int64_t>(figures.size()), std::as_bytes(std::span(bytes)))
        .run();
    ++added_.visits;
    added_.values += figures.size();
  }

 private:
  std::int64_t unit_number(const drift::Unit& unit) {
    const auto found = in_.units.find(unit.id);
    if (found != in_.units.end()) {
      // The table has where a unit was seen last; every visit has its place then.
      place_.with(unit.node, unit.slot, unit.leaf, unit.rack, found->second).run();
      return found->second;
    }
    const auto number = static_cast<std::int64_t>(in_.units.size()) + 1;
    unit_.with(number, unit.id, unit.kind, unit.serial, unit.node, unit.slot, unit.leaf, unit.rack).run();
    ++added_.new_units;
    return in_.units[unit.id] = number;
  }

  std::int64_t cohort_number(const std::string& name) {
    const auto found = in_.cohorts.find(name);
    if (found != in_.cohorts.end()) return found->second;
    const auto number = static_cast<std::int64_t>(in_.cohorts.size()) + 1;
    cohort_.with(number, name).run();
    return in_.cohorts[name] = number;
  }

  std::int64_t metric_number(const drift::Metric& metric) {
    const auto found = in_.metrics.find(metric.name);
    if (found != in_.metrics.end()) return found->second;
    const auto number = static_cast<std::int64_t>(in_.metrics.size()) + 1;
    metric_
        .with(number, metric.name, metric.probe, metric.revision, metric.unit, std::string(word_of(metric.type)),
              metric.lower_is_better, metric.fatal, column_of(metric.course), metric.expected)
        .run();
    return in_.metrics[metric.name] = number;
  }

  std::int64_t series_number(std::int64_t unit, const drift::Metric& metric, const std::string& name) {
    const std::int64_t number = metric_number(metric);
    const std::uint64_t key = static_cast<std::uint64_t>(unit) << 24 | static_cast<std::uint64_t>(number);
    const auto found = in_.series.find(key);
    if (found != in_.series.end()) {
      if (found->second.second != metric.revision) revised(found->second, metric, name);
      return found->second.first;
    }
    const auto fresh = static_cast<std::int64_t>(in_.series.size()) + 1;
    series_.with(fresh, unit, number, metric.revision).run();
    in_.series[key] = {fresh, metric.revision};
    return fresh;
  }

  /// A new revision of a probe measures something else: an event says so, once for each unit.
  void revised(std::pair<std::int64_t, int>& kept, const drift::Metric& metric, const std::string& name) {
    kept.second = metric.revision;
    revision_.with(metric.revision, kept.first).run();
    if (!revised_.insert(name + '\0' + metric.probe).second) return;
    event_
        .with(number_of(sweep_.night), sweep_.started, name, std::string(word_of(drift::EventKind::probe_revision)),
              fmt::format("{} {}", metric.probe, metric.revision), std::string("assay"))
        .run();
    ++added_.events;
  }

  History::Internal& in_;
  const Sweep& sweep_;
  Added& added_;
  std::set<std::string> revised_;
  std::map<std::string, drift::Unit> nodes_;  ///< by name, filled when it is asked for
  Statement known_{
      in_.database,
      "SELECT name,kind,serial,slot,leaf,rack FROM unit u WHERE node=?1 AND NOT (kind='node' AND serial=0 AND "
      "EXISTS(SELECT 1 FROM unit WHERE node=?1 AND kind='node' AND serial=1) AND "
      "NOT EXISTS(SELECT 1 FROM visit v WHERE v.unit=u.id AND v.state='measured')) ORDER BY id"};
  Statement visit_{in_.database,
                   "INSERT INTO visit(night,unit,cohort,sweep,state,retest,node,slot,boot,partner,reason,figures,"
                   "packed) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"};
  Statement unit_{in_.database, "INSERT INTO unit VALUES(?,?,?,?,?,?,?,?)"};
  Statement place_{in_.database, "UPDATE unit SET node=?,slot=?,leaf=?,rack=? WHERE id=?"};
  Statement cohort_{in_.database, "INSERT INTO cohort VALUES(?,?)"};
  Statement metric_{in_.database, "INSERT INTO metric VALUES(?,?,?,?,?,?,?,?,?,?)"};
  Statement series_{in_.database, "INSERT INTO series(id,unit,metric,revision) VALUES(?,?,?,?)"};
  Statement revision_{in_.database, "UPDATE series SET revision=? WHERE id=?"};
  Statement event_{in_.database, "INSERT INTO event(night,time,scope,kind,text,who) VALUES(?,?,?,?,?,?)"};
};

}  // namespace

void History::Internal::load() {
  if (loaded) return;
  units.clear(), metrics.clear(), cohorts.clear(), series.clear();
  const auto names = [&](const char* sql, std::unordered_map<std::string, std::int64_t>& into) {
    for (Statement row(database, sql); row.step();) into[row.text(1)] = row.whole(0);
  };
  names("SELECT id,name FROM unit", units);
  names("SELECT id,name FROM metric", metrics);
  names("SELECT id,name FROM cohort", cohorts);
  for (Statement row(database, "SELECT id,unit,metric,revision FROM series"); row.step();)
    series[static_cast<std::uint64_t>(row.whole(1)) << 24 | static_cast<std::uint64_t>(row.whole(2))] = {
        row.whole(0), static_cast<int>(row.whole(3))};
  loaded = true;
}

Result<Added> History::add(Sweep sweep) {
  Internal& in = *inside_;
  if (auto problem = unfit_sweep(sweep, in.simulated)) return std::unexpected(Failure{*problem, files::kExitBadInput});
  auto result = guarded([&] {
    Added added{.night = sweep.night};
    Transaction all(in.database);
    Statement known(in.database, "SELECT night FROM sweep WHERE run_sha256=?");
    if (known.with(sweep.run_sha256).step()) {
      added.already = true;
      added.night = date_of(known.whole(0));
      return added;
    }
    in.loaded = false;  // another process may have added in between
    in.load();
    auto shown = name_shared_by_place(in, sweep);
    std::ranges::move(missing_parts(in.database, sweep), std::back_inserter(sweep.visits));
    std::string raw_sha256;
    if (in.replaying) {
      raw_sha256 = digest_of_file(in.raw_path(sweep.run_sha256));
    } else if (!sweep.raw.empty()) {
      const std::string packed = compressed(sweep.raw, in.raw_path(sweep.run_sha256));
      raw_sha256 = files::sha256(packed);
      try {
        files::write_durably(in.raw_path(sweep.run_sha256), packed);
      } catch (const std::system_error& error) {
        throw Broken(Failure{{in.raw_path(sweep.run_sha256), error.what(), "nothing was added; check the free space"},
                             files::kExitBadInput});
      }
    }
    if (in.keeps_entries()) {  // with units as the run shows them: a rebuild finds anew which serial numbers are shared
      exchange(sweep, shown);
      in.keep_entry(kSweep, entry_text(sweep));
      exchange(sweep, shown);
    }
    Statement(in.database,
              "INSERT INTO sweep(run_sha256,night,started,utc_offset_s,origin,verdict,label,raw_sha256) "
              "VALUES(?,?,?,?,?,?,?,?)")
        .with(sweep.run_sha256, number_of(sweep.night), sweep.started, sweep.utc_offset_s,
              std::string(word_of(sweep.origin)), sweep.verdict, sweep.label, raw_sha256)
        .run();
    const std::int64_t number = in.database.last_id();
    Adder adder(in, sweep, added);
    for (const UnitVisit& visit : sweep.visits) {
      for (const UnitVisit& one : adder.units_of(visit)) adder.add(one, number);
    }
    // Judgements up to this night or later are made anew.
    Statement(in.database, "DELETE FROM saved WHERE night>=?").with(number_of(sweep.night)).run();
    all.commit();
    return added;
  });
  if (!result) in.loaded = false;
  return result;
}

Result<void> History::add_event(const drift::Event& event) {
  return guarded([&] {
    Transaction all(inside_->database);
    if (inside_->keeps_entries()) inside_->keep_entry(kEvent, entry_text(event));
    Statement(inside_->database, "INSERT INTO event(night,time,scope,kind,text,who) VALUES(?,?,?,?,?,?)")
        .with(number_of(event.night), event.time, event.scope, std::string(word_of(event.kind)), event.text, event.who)
        .run();
    Statement(inside_->database, "DELETE FROM saved WHERE night>=?").with(number_of(event.night)).run();
    all.commit();
  });
}

Result<std::size_t> History::set_baseline(const Sweep& acceptance, const std::string& who) {
  return guarded([&] {
    Transaction all(inside_->database);
    if (inside_->keeps_entries()) inside_->keep_entry(kBaseline, entry_text(acceptance, who));
    inside_->loaded = false;  // another process may have added in between
    inside_->load();
    Sweep named{.night = acceptance.night, .visits = acceptance.visits};
    name_shared_by_place(*inside_, named);
    std::size_t count = 0;
    Statement accept(inside_->database,
                     "UPDATE series SET accepted=? WHERE unit=(SELECT id FROM unit WHERE name=?) AND "
                     "metric=(SELECT id FROM metric WHERE name=?) RETURNING id");
    std::map<std::pair<std::string, std::string>, std::vector<double>> accepted;  // of a node with many partners many
    for (const UnitVisit& visit : named.visits) {
      for (const Figure& figure : visit.figures) {
        if (visit.state == drift::VisitState::measured && std::isfinite(figure.value))
          accepted[{visit.unit.id, figure.metric.name}].push_back(figure.value);
      }
    }
    for (const auto& [series, values] : accepted)
      for (accept.with(median(values), series.first, series.second); accept.step();) ++count;
    Statement(inside_->database, "INSERT INTO event(night,time,scope,kind,text,who) VALUES(?,?,?,?,?,?)")
        .with(number_of(acceptance.night), acceptance.started, std::string("fleet"),
              std::string(word_of(drift::EventKind::note)),
              fmt::format("baseline {} of {} series", acceptance.run_sha256, count), who)
        .run();
    inside_->database.run("DELETE FROM saved");
    all.commit();
    return count;
  });
}

Result<std::size_t> History::prune(drift::Date before) {
  return guarded([&] {
    std::size_t count = 0;
    std::vector<std::string> runs;
    {
      Transaction all(inside_->database);
      Statement old(inside_->database, "SELECT run_sha256 FROM sweep WHERE night<? AND raw_sha256<>''");
      for (old.with(number_of(before)); old.step();) runs.push_back(old.text(0));
      Statement(inside_->database, "UPDATE sweep SET raw_sha256='' WHERE night<?").with(number_of(before)).run();
      all.commit();
    }
    for (const auto& run : runs) {
      std::error_code gone;  // a file that is not there any more is pruned
      std::filesystem::remove(inside_->raw_path(run), gone);
      ++count;
    }
    return count;
  });
}

Result<void> History::save(const std::string& policy_sha256, const Saved& state) {
  return guarded([&] {
    Transaction all(inside_->database);
    Statement(inside_->database, "INSERT OR REPLACE INTO saved VALUES(?,?,?)")
        .with(policy_sha256, number_of(state.night), state.bytes)
        .run();
    all.commit();
  });
}

Result<void> History::forget_saved() {
  return guarded([&] { inside_->database.run("DELETE FROM saved"); });
}

}  // namespace assay::history
