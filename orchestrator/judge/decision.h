// decision: the decision rule on pooled samples of one cell; arithmetic only, no files.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::judge {

/// The judged statistic of pooled samples.
struct Estimate {
  double value = 0;
  std::optional<Interval> interval;  ///< order-statistic, for medians and percentiles
  double uncertainty = 0;            ///< standard uncertainty: repeatability and instrument in quadrature
};

/// `statistic` of `samples`. Repeatability is the half width of the
/// order-statistic interval over the normal quantile of its level; min and max have none. `instrument` is relative.
/// Nothing when a median or percentile has too few samples for an interval at `confidence`.
std::optional<Estimate> estimate(std::span<const double> samples, plan::Statistic statistic, double confidence,
                                 double instrument);

/// Standard uncertainties of guard band in force when the risk of `guard_factor` is split evenly among `looks`
/// (Bonferroni): the factor itself for one look.
double guard_factor_for(double guard_factor, int looks);

/// What a limit's shares refer to, with its standard uncertainty; value 1 and 0 for absolute limits.
struct ReferenceValue {
  double value = 1;
  double uncertainty = 0;
};

/// Fills outcome, reason, limits, acceptance limits, uncertainty, margin and false_accept of `result` from the
/// estimate: pass y >= L + w, conditional_pass L <= y < L + w, conditional_fail L - w < y < L, fail y <= L - w,
/// mirrored for an upper limit; with both, the worse counts. w = guard_factor * u (ILAC-G8, JCGM 106).
void decide(const plan::Limit& limit, const Estimate& estimate, const ReferenceValue& reference, double guard_factor,
            Result& result);

}  // namespace assay::judge
