// undecided_cell: a cell whose samples have been looked at, and its decision once it is known how attempts scatter.
#pragma once

#include <string>

#include "orchestrator/judge/decide/attempts_estimate.h"
#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/judge/decide/decision.h"
#include "orchestrator/judge/decide/steadiness.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::judge {

/// Between looking at a step's records, which are then let go, and deciding its cells, for which the whole run is
/// needed.
struct UndecidedCell {
  Result result;
  const plan::Requirement* requirement = nullptr;
  bool settled = false;  ///< `result` has its outcome, and nothing below is known
  AttemptsEstimate estimate = {};
  Steadiness seen = {};
  ReferenceValue reference = {};
  double instrument = 0;  ///< relative standard uncertainty
  StatedScatter stated = {};
  double risk = 0;         ///< of the decision
  std::string doubt = {};  ///< why it may not pass, with any figure: a fault that no requirement judges, a common cause
  std::string words = {};  ///< meaning of the figure, for the reason of a cell that does not pass
  std::string unit = {};   ///< of a contrast: of its two figures
  std::string unmet = {};  ///< the first demanded condition that is not met, in one sentence
};

/// A cell with its outcome.
UndecidedCell settled_cell(Result result);

/// A cell with `when_told` whose figure, `what`, the machine does not report: no node is judged by it.
UndecidedCell unchecked_cell(Result result, const std::string& what);

/// Decides `cell`, unless it is settled.
void settle(UndecidedCell& cell, const Scatter& scatter, GuardFactors& factors);

/// One sentence on `result`, a decided cell of `requirement`, whose two figures are in `unit`: "nvls made no
/// difference: 837.8 GB/s with it, 838.1 GB/s without; a gain of at least 5 % is demanded." An undecided one also says
/// how many pairs would decide, if the mean does not move and pairs scatter as `scatter` says.
std::string contrast_words(const plan::Requirement& requirement, const std::string& unit, const Scatter& scatter,
                           double risk, const Result& result);

/// The least number of pairs, more than `pairs`, whose guard band is within `distance` when their logarithms have the
/// standard deviation `deviation`, known with infinite degrees of freedom or from the pairs themselves; 0 if even
/// kMostPairs are too few.
int pairs_to_decide(int pairs, double distance, double deviation, bool is_known, double risk);

/// The most that a plan can have: 10 attempts in each of two stages.
inline constexpr int kMostPairs = 20;

}  // namespace assay::judge
