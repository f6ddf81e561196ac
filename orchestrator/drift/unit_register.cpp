// unit_register: derives place, cohort and age of each unit from visits and events.
#include "orchestrator/drift/unit_register.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "probes/core/suggest.h"

namespace assay::drift {
namespace {

std::string place_of(const std::string& node, const std::string& kind, const std::string& slot) {
  return node + '\0' + kind + '\0' + slot;
}

/// The visit of a night that counts: a measurement before all others.
int rank_of(VisitState state) {
  switch (state) {
    case VisitState::measured:
      return 0;
    case VisitState::preempted:
      return 1;
    case VisitState::busy:
      return 2;
    case VisitState::not_measured:
      return 3;
    case VisitState::not_due:
    case VisitState::missing:
      break;
  }
  return 4;
}

bool changes_version(EventKind kind) {
  using enum EventKind;
  return kind == driver || kind == firmware || kind == bios || kind == probe_revision;
}

}  // namespace

std::string kind_of_cohort(const std::string& cohort) { return cohort.substr(0, cohort.find(" | ")); }

InputError unknown_unit(const Fleet& fleet, const std::string& wanted) {
  std::vector<std::string> names;
  for (const Unit& unit : fleet.units) {
    names.push_back(unit.id);
    names.push_back(unit.node);
  }
  return {wanted, "is neither the id of a unit nor the name of a node in this history", suggestion(wanted, names)};
}

void UnitRegister::grow(const Fleet& fleet) {
  for (std::size_t i = tracks.size(); i < fleet.units.size(); ++i)
    tracks.push_back({.node = fleet.units[i].node, .slot = fleet.units[i].slot});
}

std::uint32_t UnitRegister::cohort_number(const std::string& name) {
  const auto [found, fresh] = cohort_numbers.emplace(name, static_cast<std::uint32_t>(cohorts.size()));
  if (fresh) cohorts.push_back(name);
  return found->second;
}

std::vector<std::uint32_t> UnitRegister::named(const Fleet& fleet, const Event& event) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < tracks.size(); ++i) {
    if (event.scope == "fleet" || event.scope == fleet.units[i].id || event.scope == tracks[i].node) found.push_back(i);
  }
  return found;
}

void UnitRegister::take(std::uint32_t unit, const Event& event, Day day) {
  UnitTrack& track = tracks[unit];
  if (changes_version(event.kind)) track.epoch = std::string(word_of(event.kind)) + " " + event.text;
  if (event.kind == EventKind::maintenance) track.out = day;
  if (event.kind == EventKind::moved) track.moved = day;
  if (event.kind == EventKind::retired) track.gone = true;
}

void UnitRegister::place(const Fleet& fleet, const Visit& visit, Day day) {
  UnitTrack& track = tracks[visit.unit];
  const std::string& kind = fleet.units[visit.unit].kind;
  const std::string& node = visit.node.empty() ? track.node : visit.node;
  const std::string& slot = visit.slot.empty() ? track.slot : visit.slot;
  if (track.first_known == kNever) {
    track.first_known = day;
  } else if (track.node != node || track.slot != slot) {
    track.moved = day;
  }
  const auto [there, fresh] = in_place.emplace(place_of(node, kind, slot), visit.unit);
  if (!fresh && there->second != visit.unit) {
    UnitTrack& other = tracks[there->second];
    // Of two parts with serial numbers in one slot, the one that was not measured was taken out.
    const bool both = fleet.units[visit.unit].serial && fleet.units[there->second].serial;
    const Day seen = both && visit.state == VisitState::measured ? other.last_measured : other.last_seen;
    if (seen < day && other.node == node && other.slot == slot) other.gone = true;
    there->second = visit.unit;
  }
  track.node = node;
  track.slot = slot;
  track.gone = false;
}

/// A node that is busy has visits of all units that were ever on it: of one that is gone they say nothing.
bool UnitRegister::is_void(const Visit& visit) const {
  const UnitTrack& track = tracks[visit.unit];
  return track.gone && track.first_known != kNever && visit.state != VisitState::measured;
}

/// A node that was not measured in its first sweep has a unit without a serial number, which was never measured. It
/// ends when the node is measured under its serial number.
void UnitRegister::end_stand_ins(const Fleet& fleet, const Night& night) {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const UnitTrack& track = tracks[i];
    const bool known = !track.gone && track.first_known != kNever;
    if (known && track.last_measured == kNever && !fleet.units[i].serial && fleet.units[i].kind == "node")
      waiting.push_back(i);
  }
  if (waiting.empty()) return;
  std::set<std::string> measured;
  for (const Visit& visit : night.visits) {
    const Unit& unit = fleet.units[visit.unit];
    if (visit.state == VisitState::measured && unit.serial && unit.kind == "node")
      measured.insert(tracks[visit.unit].node);
  }
  for (const std::size_t i : waiting) tracks[i].gone = measured.contains(tracks[i].node);
}

std::vector<std::uint32_t> UnitRegister::take(const Fleet& fleet, const Night& night, Day day) {
  std::vector<std::uint32_t> numbers(night.visits.size());
  std::vector<std::size_t> order(night.visits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const Visit& visit = night.visits[i];
    return std::tie(fleet.units[visit.unit].id, visit.started, visit.run_sha256);
  });
  // Two passes: a unit that changed places with another is not taken for one that is gone.
  for (const std::size_t i : order) {
    UnitTrack& track = tracks[night.visits[i].unit];
    const VisitState state = night.visits[i].state;
    if (state == VisitState::missing || is_void(night.visits[i])) continue;
    if (track.last_seen != day || rank_of(state) < rank_of(track.last_state)) track.last_state = state;
    track.last_seen = day;
    if (state != VisitState::measured) continue;
    track.last_measured = day;
    track.missing = false;
  }
  for (const std::size_t i : order) {
    const Visit& visit = night.visits[i];
    if (visit.state == VisitState::missing) continue;
    const bool counts = !is_void(visit);
    if (counts) place(fleet, visit, day);
    const std::string& epoch = tracks[visit.unit].epoch;
    const std::string& cohort = fleet.cohorts[visit.cohort];
    numbers[i] = cohort_number(epoch.empty() ? cohort : cohort + " | " + epoch);
    if (counts) tracks[visit.unit].cohort = numbers[i];
  }
  end_stand_ins(fleet, night);
  for (const Visit& visit : night.visits) {
    UnitTrack& track = tracks[visit.unit];
    if (visit.state == VisitState::missing) track.missing = !track.gone && track.last_measured != day;
  }
  return numbers;
}

Coverage UnitRegister::coverage(const Fleet& fleet, Day day, const Policy& policy) const {
  Coverage all;
  all.allowed_nights = policy.max_age_nights;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const UnitTrack& track = tracks[i];
    if (track.gone || track.first_known == kNever) continue;
    ++all.units;
    if (track.last_seen != day) {
      ++all.unseen;
    } else {
      switch (track.last_state) {
        case VisitState::measured:
          ++all.measured;
          break;
        case VisitState::not_due:
          ++all.not_due;
          break;
        case VisitState::busy:
          ++all.busy;
          break;
        case VisitState::preempted:
          ++all.preempted;
          break;
        case VisitState::not_measured:
          ++all.not_measured;
          break;
        case VisitState::missing:  // no state of a unit that was seen
          break;
      }
    }
    // A unit that was never measured waits since the night before it became known.
    const Day since = track.last_measured == kNever ? track.first_known - 1 : track.last_measured;
    const int nights = day - since;
    all.max_age_nights = std::max(all.max_age_nights, nights);
    if (nights > policy.max_age_nights || track.missing)
      all.overdue.push_back({.unit = fleet.units[i].id,
                             .node = track.node,
                             .nights = nights,
                             .last_state = track.missing               ? kMissing
                                           : track.last_seen == kNever ? ""
                                                                       : std::string(word_of(track.last_state))});
  }
  std::ranges::sort(all.overdue, {}, &Overdue::unit);
  return all;
}

}  // namespace assay::drift
