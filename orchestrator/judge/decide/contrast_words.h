// contrast_words: the reason of a contrast's outcome.
#pragma once

#include <string>

#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::judge {

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
