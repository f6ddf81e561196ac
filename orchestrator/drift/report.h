// report: state of every unit by its history as of one night (assay.drift/3).
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "orchestrator/drift/fleet.h"
#include "orchestrator/drift/night.h"
#include "orchestrator/drift/policy.h"
#include "probes/core/error.h"
#include "profiles/actions.h"

namespace assay::drift {

/// State of a unit. The last five mean that nothing is known of it tonight: neither healthy nor unhealthy.
enum class UnitState {
  learning,   ///< too few visits to be judged
  steady,     ///< as before
  watch,      ///< significant, and smaller than min_effect or seen before the warm-up was over
  flagged,    ///< significant; re-tests are to decide
  confirmed,  ///< re-tests agree
  draining,   ///< confirmed, and taken out of service
  repaired,   ///< awaits two clean visits
  lemon,      ///< came back three times: for people only
  not_due,
  busy,
  preempted,
  not_measured,
  stale,  ///< flagged, and not visited for long
};

constexpr auto words_of(UnitState) { return names_as_words<UnitState>(); }

/// The rule that raised a flag.
enum class Rule { small_shift, large_shift, cliff, intermittent, count, state, below_fleet };

constexpr auto words_of(Rule) { return names_as_words<Rule>(); }

/// The numbers behind a flag at the night that raised it; logarithms, worse is smaller.
struct Arithmetic {
  double x = 0;         ///< tonight's, without the cohort's shift
  double shift = 0;     ///< of the cohort
  double m = 0;         ///< the unit's mean
  double s = 0;         ///< its deviation from night to night
  double n = 0;         ///< visits behind them
  double T = 0;         ///< residual
  double z = 0;         ///< score
  double C = 0, h = 0;  ///< chart and threshold; 0 for other rules
  double rho = 0;       ///< serial correlation that was taken out
  std::size_t peers = 0;
};

/// A fresh test of a flagged series. Visits of later nights count as well.
struct RetestSeen {
  Date night = {};
  double ratio = 1;      ///< value over reference, below 1 is worse
  double residual = 0;   ///< in deviations
  bool regular = false;  ///< a nightly visit
  std::string partner = {}, run_sha256 = {};
};

/// One series that is not as before.
struct Flag {
  std::string id;  ///< the first 12 hex digits of a SHA-256 over unit, metric and the night that raised it
  std::string unit, kind, node, slot, leaf, rack;
  bool serial = false;
  std::string metric;
  MetricClass type = MetricClass::level;
  UnitState state = UnitState::flagged;  ///< watch, flagged, confirmed, draining, repaired, lemon or stale
  Rule rule = Rule::small_shift;
  Date raised = {};
  Date onset = {};                       ///< estimated
  double ratio = 1;                      ///< figure over reference since then, below 1 is worse; of counts the events
  double ratio_low = 1, ratio_high = 1;  ///< 95 %
  Date last_visit = {};
  int relapses = 0;                   ///< in 28 nights
  std::vector<std::string> evidence;  ///< SHA-256 of runs
  std::vector<RetestSeen> retests;
  std::vector<std::string> suspects;  ///< smallest elements that the flags have in common: "node n01", "leaf l3"
  /// Of a figure of two nodes: partners with which it was bad, in alphabetical order. Not in the document, which has
  /// the tests.
  std::vector<std::string> partners = {};
  std::string words;  ///< one sentence
  Arithmetic arithmetic;
};

/// A shift of a whole cohort, or of so many units that the cause is common.
struct FleetFinding {
  enum class Kind { step, below_acceptance, many_flags };
  Kind kind = Kind::step;
  std::string metric, cohort;  ///< cohort empty: of all
  Date since = {};
  double ratio = 1;  ///< below 1 is worse
  double limit = 1;  ///< beyond which it is reported
  std::size_t units = 0;
  std::string words;
};

constexpr auto words_of(FleetFinding::Kind) { return names_as_words<FleetFinding::Kind>(); }

/// A fresh test that is asked for.
struct RetestWanted {
  std::string unit, node, metric, probe;
  int times = 0;
  bool tonight = false;        ///< of a cliff: before the night is over; otherwise at another hour or night
  bool other_partner = false;  ///< of a figure of two nodes
  std::string flag;            ///< empty: of no flag yet
};

/// Flags with a common cause: one finding.
struct Group {
  std::string element;  ///< "node n01", "leaf l3", "cohort …", "unit gpu:13…"
  std::vector<std::string> flags;
};

/// The last state of a unit that a run misses.
inline constexpr const char* kMissing = "missing";

/// A unit that was not measured for longer than the policy allows, or that a run misses: it measured the node, and the
/// unit's metrics on other units.
struct Overdue {
  std::string unit, node;
  int nights = 0;          ///< since its last measurement, or since it was first known
  std::string last_state;  ///< a word of VisitState, or kMissing
};

/// Units by the result of tonight's sweeps.
struct Coverage {
  std::size_t units = 0, measured = 0, not_due = 0, busy = 0, preempted = 0, not_measured = 0, unseen = 0;
  int max_age_nights = 0;  ///< of the unit that waits longest
  int allowed_nights = 0;  ///< that a unit may wait by the policy
  int silent_nights = 0;   ///< from the last sweep to the day of the judgement; 0 while the policy allows as many
  std::vector<Overdue> overdue;
};

/// Why a series with readings was not judged.
struct NotJudged {
  std::string unit, metric, reason;
};

/// Figures that follow from the policy and the number of visits.
struct Thresholds {
  double visits = 0;                ///< of all level series in a budget period
  double arl0 = 0;                  ///< visits between false flags of one chart
  double h_small = 0, h_large = 0;  ///< of the charts for k = 0.5 and k = 1
  int cliff_history = 0;            ///< visits that a cliff needs before it
  double count_p = 0;               ///< probability at which a count is flagged
};

/// Everything. Sorted by unit and metric; the same bytes for the same history and policy.
struct DriftReport {
  Date as_of = {};
  bool simulated = false;
  std::string policy_sha256, history_sha256;
  std::size_t nights = 0, series = 0;
  Thresholds thresholds;
  Coverage coverage;
  std::map<std::string, std::size_t> units;  ///< by word of UnitState, all present
  std::vector<FleetFinding> fleet;
  std::vector<Flag> flags;
  std::vector<Group> groups;
  std::vector<RetestWanted> retests_wanted;
  std::vector<NotJudged> not_judged;
  std::map<std::string, UnitState> states;  ///< by unit, only those that are not steady
};

/// The bytes of drift.json: sorted keys, one-space indent, final newline; no clock in it.
std::string report_text(const DriftReport& report);

/// Reads drift.json back; strict.
std::expected<DriftReport, InputError> read_report(std::string_view text, const std::string& where);

/// 1 with a confirmed flag, otherwise 3 with an overdue unit, without any figure or unit, or when sweeps have stopped,
/// otherwise 0.
int exit_code(const DriftReport& report);

/// The report for people; the first line has nodes, flags and advice.
std::string summary_text(const DriftReport& report);

/// The sight of a policy in this history, for people: the nights until a lasting fall is flagged, from which visit on
/// a unit is judged (null: said without a number), and the limits of a small fleet.
std::string sight_text(const DriftReport& report, const Policy* policy);

/// The next step after a flag, with its command.
std::string advice_for(const Flag& flag);

/// The action for the figure of `flag`, by the table of actions; not in the document.
profiles::Advice action_of(const Flag& flag);

/// The element of a group in short: "n00003" for "unit node:n00003".
std::string words_of_element(const std::string& element);

}  // namespace assay::drift
