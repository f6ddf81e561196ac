// night: the data of one night: visits, readings, re-tests and events.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/words.h"

namespace assay::drift {

/// A night by its evening's local date: the local date at the start of a sweep minus 12 hours.
using Date = std::chrono::sys_days;

/// How far the midnight in UTC after a night's date may lie ahead of a clock: 26 hours where local noon is 14 hours
/// before that of UTC, and clocks differ by minutes. What is further ahead is of a wrong clock, or invented.
inline constexpr std::chrono::minutes kMostAhead{26 * 60 + 5};

/// "2026-03-01".
std::string date_text(Date date);
/// Nothing for another form and for a day that does not exist.
std::optional<Date> date_from(std::string_view text);

/// Result of a sweep for a unit. Only `measured` says something of its health; `missing` is a part that was looked for.
enum class VisitState { measured, not_due, busy, preempted, not_measured, missing };

constexpr auto words_of(VisitState) { return names_as_words<VisitState>(); }

/// A unit in one sweep.
struct Visit {
  std::uint32_t unit = 0;    ///< index into Fleet::units
  std::uint32_t cohort = 0;  ///< index into Fleet::cohorts
  VisitState state = VisitState::measured;
  bool retest = false;          ///< a fresh test that was asked for, or a later sweep of the same night
  std::string run_sha256 = {};  ///< of the run's journal
  std::string started = {};     ///< UTC (utc_time.h)
  std::string node = {}, slot = {};
  std::string boot = {};     ///< id of the node's boot, for counters
  std::string partner = {};  ///< of figures that two nodes measured together: the other node
  std::string reason = {};   ///< why it was not measured
};

/// One figure of a visit, in base units.
struct Reading {
  std::uint32_t series = 0;  ///< index into Fleet::series
  std::uint32_t visit = 0;   ///< index into Night::visits
  double value = 0;
  std::uint32_t samples = 0;  ///< behind the figure
};

/// Events of units, which change their expectations.
enum class EventKind {
  driver,          ///< a new version: another cohort
  firmware,        ///< likewise
  bios,            ///< likewise
  probe_revision,  ///< likewise
  part_swap,       ///< another part in its place: the unit begins anew
  moved,           ///< another slot: the history stays
  repaired,        ///< judged against the reference from before the fault until two clean visits
  maintenance,     ///< not judged in this night
  drained,         ///< taken out of service
  released,        ///< put back into service
  lemon,           ///< never to be released automatically
  accepted_as_is,  ///< a person accepts the flagged level as the new one
  retired,         ///< out of the fleet for good: no visit is owed to it, until it is measured again
  note,            ///< text only
};

constexpr auto words_of(EventKind) { return names_as_words<EventKind>(); }

/// One of them.
struct Event {
  Date night = {};
  std::string time = {};   ///< UTC
  std::string scope = {};  ///< id of a unit, name of a node, or "fleet"
  EventKind kind = EventKind::note;
  std::string text = {};
  std::string who = {};
};

/// All of one night, in any order; of a unit's regular visits the first counts, later ones are re-tests.
struct Night {
  Date date = {};
  std::vector<Visit> visits;
  std::vector<Reading> readings;
  std::vector<Event> events;
};

}  // namespace assay::drift
