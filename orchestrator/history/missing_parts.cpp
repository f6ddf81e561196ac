// missing_parts: compares the parts that a probe reads now with those of its last visit; see missing_parts.h.
#include "orchestrator/history/missing_parts.h"

#include <algorithm>
#include <set>

#include "orchestrator/history/history_internal.h"
#include "orchestrator/history/packed_figures.h"

namespace assay::history {
namespace {

/// Finds out whether a probe that read a part before should have found it.
class Search {
 public:
  explicit Search(const Database& database) : database_(database) {}

  /// Of the unit with the number `id`, last read by `probe` on its node, which now read `found` there.
  bool misses(std::int64_t id, const drift::Unit& unit, const std::string& probe, const std::set<std::string>& found) {
    const std::set<std::int64_t> own = series_of(id, probe);
    if (own.empty()) return false;
    Statement visits(database_,
                     "SELECT sweep,packed FROM visit WHERE unit=? AND node=? AND state='measured' ORDER BY night DESC");
    for (visits.with(id, unit.node); visits.step();) {
      if (!has(visits.bytes(1), own)) continue;
      return are_others_left(unit.kind, found, probe, visits.whole(0));
    }
    return false;
  }

 private:
  std::set<std::int64_t> series_of(std::int64_t unit, const std::string& probe) {
    std::set<std::int64_t> all;
    for (series_.with(unit, probe); series_.step();) all.insert(series_.whole(0));
    return all;
  }

  static bool has(const std::string& bytes, const std::set<std::int64_t>& series) {
    std::vector<PackedFigure> figures;
    return unpack(bytes, figures) &&
           std::ranges::any_of(figures, [&](const PackedFigure& one) { return series.contains(one.series); });
  }

  /// Whether `found` has no unit of this kind, or one that `probe` read in `sweep`.
  bool are_others_left(const std::string& kind, const std::set<std::string>& found, const std::string& probe,
                       std::int64_t sweep) {
    bool none = true;
    for (const std::string& name : found) {
      if (!name.starts_with(kind + ":")) continue;
      none = false;
      if (beside_.with(name, sweep).step() && has(beside_.bytes(1), series_of(beside_.whole(0), probe))) return true;
    }
    return none;
  }

  const Database& database_;
  Statement series_{database_, "SELECT s.id FROM series s JOIN metric m ON m.id=s.metric WHERE s.unit=? AND m.probe=?"};
  Statement beside_{database_,
                    "SELECT u.id,v.packed FROM unit u JOIN visit v ON v.unit=u.id WHERE u.name=? AND v.sweep=?"};
};

}  // namespace

std::vector<UnitVisit> missing_parts(const Database& database, const Sweep& sweep) {
  std::vector<UnitVisit> all;
  if (sweep.asked.empty()) return all;
  std::set<std::string> seen;
  for (const UnitVisit& visit : sweep.visits) seen.insert(visit.unit.id);
  Search search(database);
  Statement last(database, "SELECT night,state FROM visit WHERE unit=? ORDER BY night DESC,id DESC LIMIT 1");
  // A unit that is no piece of hardware, such as a pair of GPUs, ends with its parts.
  Statement row(database,
                "SELECT id,name,kind,serial,node,slot,leaf,rack FROM unit WHERE kind IN "
                "('cpu','dimm','drive','gpu','nic') ORDER BY id");
  while (row.step()) {
    const auto asked = sweep.asked.find(row.text(4));
    if (asked == sweep.asked.end() || seen.contains(row.text(1)) || !last.with(row.whole(0)).step()) continue;
    if (last.whole(0) >= number_of(sweep.night) || last.text(1) == word_of(drift::VisitState::missing)) continue;
    const drift::Unit unit{.id = row.text(1),
                           .kind = row.text(2),
                           .serial = row.whole(3) != 0,
                           .node = row.text(4),
                           .slot = row.text(5),
                           .leaf = row.text(6),
                           .rack = row.text(7)};
    const auto probe = std::ranges::find_if(
        asked->second, [&](const auto& one) { return search.misses(row.whole(0), unit, one.first, one.second); });
    if (probe == asked->second.end()) continue;
    all.push_back({.unit = unit,
                   .cohort = unit.kind,
                   .state = drift::VisitState::missing,
                   .reason = probe->first + " did not find it"});
  }
  return all;
}

}  // namespace assay::history
