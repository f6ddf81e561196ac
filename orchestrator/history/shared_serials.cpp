// shared_serials: names parts by their places where a serial number is no identity; see history_internal.h.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/history/history_internal.h"

namespace assay::history {
namespace {

/// Finds serial numbers of several parts, which are no identities, and keeps them in the table "meta".
class SharedSerials {
 public:
  SharedSerials(const History::Internal& in, drift::Date night) : in_(in), night_(night) {
    for (Statement row(in.database, "SELECT substr(key,8) FROM meta WHERE key LIKE 'shared %'"); row.step();)
      shared_.insert(row.text(0));
  }

  /// Names parts of `sweep` by their places, also those in `asked`.
  std::vector<std::pair<std::size_t, drift::Unit>> settle(Sweep& sweep) {
    std::map<std::string, std::set<std::pair<std::string, std::string>>> places;  // by id: nodes and slots
    for (const UnitVisit& visit : sweep.visits) {
      if (shows_serial(visit)) places[visit.unit.id].emplace(visit.unit.node, visit.unit.slot);
    }
    std::map<std::pair<std::string, std::string>, std::set<std::string>> names;  // by node and former id
    std::vector<std::pair<std::size_t, drift::Unit>> shown;
    for (std::size_t i = 0; i < sweep.visits.size(); ++i) {
      UnitVisit& visit = sweep.visits[i];
      if (!shows_serial(visit)) continue;
      const auto name = name_of(visit.unit, places.at(visit.unit.id).size() > 1);
      if (!name) continue;
      names[{visit.unit.node, visit.unit.id}].insert(*name);
      shown.emplace_back(i, visit.unit);
      visit.unit.id = *name;
      visit.unit.serial = false;
    }
    for (const auto& [from, to] : names) {
      const auto asked = sweep.asked.find(from.first);
      if (asked == sweep.asked.end()) continue;
      for (auto& [probe, units] : asked->second) {
        if (units.erase(from.second) != 0) units.insert(to.begin(), to.end());
      }
    }
    return shown;
  }

 private:
  /// A missing part is that of another run.
  static bool shows_serial(const UnitVisit& visit) {
    return visit.unit.serial && visit.state != drift::VisitState::missing;
  }

  /// The name by the place; nothing if the serial number is the identity.
  std::optional<std::string> name_of(const drift::Unit& unit, bool twice) {
    const bool found = twice || is_elsewhere(unit);
    if (!found && !shared_.contains(unit.id)) return std::nullopt;
    if (shared_.insert(unit.id).second) keep_.with(unit.id).run();
    if (known_.with(unit.kind, unit.node, unit.slot).step()) return known_.text(0);
    if (!found) return std::nullopt;
    return unit.slot.empty() ? unit.kind + ":" + unit.node : fmt::format("{}:{}/{}", unit.kind, unit.node, unit.slot);
  }

  bool is_elsewhere(const drift::Unit& unit) {
    const auto known = in_.units.find(unit.id);
    return known != in_.units.end() && elsewhere_.with(known->second, number_of(night_), unit.node).step();
  }

  const History::Internal& in_;
  drift::Date night_;
  std::set<std::string> shared_;
  Statement keep_{in_.database, "INSERT OR IGNORE INTO meta VALUES('shared '||?,'')"};
  Statement known_{in_.database,
                   "SELECT name FROM unit WHERE kind=? AND node=? AND slot=? AND serial=0 ORDER BY id LIMIT 1"};
  Statement elsewhere_{in_.database,
                       "SELECT 1 FROM visit WHERE unit=? AND night=? AND state='measured' AND node<>? LIMIT 1"};
};

}  // namespace

std::vector<std::pair<std::size_t, drift::Unit>> name_shared_by_place(const History::Internal& in, Sweep& sweep) {
  return SharedSerials(in, sweep.night).settle(sweep);
}

}  // namespace assay::history
