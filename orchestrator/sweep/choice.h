// choice: which steps of the profile fit into the budget of one night.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"

namespace assay::sweep {

/// One probe with its parameters at one place, as far as the choice asks.
struct Candidate {
  std::vector<std::string> requirements;  ///< ids that are judged from its record
  double cost_s = 0;                      ///< of one node, typically
  std::size_t figures = 1;                ///< metrics that it yields
  int nights_since = 1;                   ///< nights since it was measured last; at least 1
  bool is_check = false;                  ///< shows whether others use the node: always made
  std::size_t nodes = 1;                  ///< that its largest step joins
};

/// Steps of tonight.
struct Choice {
  std::vector<std::string> only;      ///< requirement ids, checks included
  std::vector<std::string> left_out;  ///< the others
  double cost_s = 0;                  ///< of one node, typically
};

/// Requirement ids of a profile that show whether others use a node begin with this: those that are not `after` are
/// asked before anything is measured, the others when everything else is over.
inline constexpr const char* kIdlePrefix = "idle.";

/// Ids of the checks of `profile` before (`after` false) or after the measurement.
std::vector<std::string> idle_checks(const plan::Profile& profile, bool after);

/// Seconds that each step costs besides its probe's own time: start, upload of the program, the record.
inline constexpr double kStepOverhead_s = 1;

/// The candidates of `plan`, which has every requirement: steps of the same requirements are one. A node is in as many
/// of them as the plan has it in. `nights_since` is 1 throughout.
std::vector<Candidate> candidates_of(const plan::Plan& plan);

/// Moves candidates whose steps join more than `most` nodes out of `candidates`; the ids of their requirements.
std::vector<std::string> too_large(std::vector<Candidate>& candidates, std::size_t most);

/// The checks, then candidates in descending order of figures times nights since, per second, as long as they fit into
/// `budget_s`; one that does not fit is passed over for a cheaper one.
Choice choose(std::vector<Candidate> candidates, double budget_s);

/// `profile` for a sweep: nothing is required, so that no run of it is ever accepted or rejected; one attempt, no
/// second stage, and a title that says so.
plan::Profile as_sweep(plan::Profile profile);

}  // namespace assay::sweep
