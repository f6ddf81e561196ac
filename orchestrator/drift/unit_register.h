// unit_register: where each unit is, when it was measured last, and its reported state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/drift/level.h"

namespace assay::drift {

/// State of one unit.
struct UnitTrack {
  Day first_known = kNever, last_measured = kNever, last_seen = kNever;
  VisitState last_state = VisitState::not_measured;  ///< of the last night that it was seen in
  std::string node, slot;
  std::string epoch;             ///< of the last reported change of version; part of its cohort
  std::uint32_t cohort = kNone;  ///< of its last visit, among UnitRegister::cohorts
  Day moved = kNever;            ///< last night in which it was found elsewhere
  Day out = kNever;              ///< last night of maintenance
  bool gone = false;             ///< retired, or another unit is in its place; until it is measured again
  bool missing = false;          ///< not seen since a run that looked for it
};

class UnitRegister {
 public:
  std::vector<UnitTrack> tracks;     ///< by unit
  std::vector<std::string> cohorts;  ///< with reported versions
  std::map<std::string, std::uint32_t> cohort_numbers;
  std::map<std::string, std::uint32_t> in_place;  ///< by node, kind and slot

  /// Makes room for the units of `fleet`.
  void grow(const Fleet& fleet);
  /// Units that `event` is about, as of before its night.
  [[nodiscard]] std::vector<std::uint32_t> named(const Fleet& fleet, const Event& event) const;
  /// Takes a unit's place and versions from an event.
  void take(std::uint32_t unit, const Event& event, Day day);
  /// Takes the visits of a night; gives the cohort of each visit. Of a unit that is gone only a measured one counts.
  std::vector<std::uint32_t> take(const Fleet& fleet, const Night& night, Day day);
  /// Units by their result of the night `day`, and units that wait for too long or are missing.
  [[nodiscard]] Coverage coverage(const Fleet& fleet, Day day, const Policy& policy) const;

 private:
  [[nodiscard]] bool is_void(const Visit& visit) const;
  void end_stand_ins(const Fleet& fleet, const Night& night);
  std::uint32_t cohort_number(const std::string& name);
  void place(const Fleet& fleet, const Visit& visit, Day day);
};

/// The error of a name that is no unit and no node of `fleet`, with the nearest one that is.
InputError unknown_unit(const Fleet& fleet, const std::string& wanted);

/// The common part of a cohort for all versions: its text up to the first " | ".
std::string kind_of_cohort(const std::string& cohort);

}  // namespace assay::drift
