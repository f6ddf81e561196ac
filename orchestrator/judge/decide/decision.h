// decision: the decision rule on the attempts of one cell; arithmetic only, no files.
#pragma once

#include <limits>
#include <map>
#include <utility>

#include "orchestrator/judge/decide/attempts_estimate.h"
#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"

namespace assay::judge {

/// The risk that one decision takes at the limit: that of `guard_factor` (0.05 for 1.645), of which each of two
/// decisions gets half when there may be two, whether or not there are (Bonferroni).
double risk_of(double guard_factor, bool two_stages);

/// The reference of a limit's shares, with its standard uncertainty and the degrees of freedom of that; value 1 and 0
/// for absolute limits.
struct ReferenceValue {
  double value = 1;
  double uncertainty = 0;
  double degrees = std::numeric_limits<double>::infinity();
};

/// The reference that `estimate` makes: its value, and the standard uncertainty of that with an instrument of this
/// relative one.
ReferenceValue reference_from(const AttemptsEstimate& estimate, const Scatter& scatter, double instrument);

/// The factors t(1 - risk, degrees) of guard bands, each calculated once: most cells of a fleet share them.
class GuardFactors {
 public:
  double of(double risk, double degrees);

 private:
  std::map<std::pair<double, double>, double> known_;  ///< by risk and degrees
};

/// Fills outcome, reason, limits, acceptance limits, uncertainty with its terms, margin and false_accept of `result`.
/// y is the mean of the attempts, u its standard uncertainty, w = t(1 - risk, degrees) * u with the effective degrees
/// of freedom of Welch and Satterthwaite (GUM G.4), b the one-sided order-statistic bound of all samples:
/// pass y >= L + w and b >= L; conditional_pass y >= L; fail y <= L - w, with the other bound not above L;
/// conditional_fail y < L. Mirrored for an upper limit; with both, the worse counts. One attempt whose distance from
/// the next is not known passes and fails conditionally only. `instrument` is relative. Of ratios the logarithms are
/// compared: pass y >= L exp(w / y), fail y <= L exp(-w / y).
void decide(const plan::Limit& limit, const AttemptsEstimate& estimate, const Scatter& scatter, double instrument,
            const ReferenceValue& reference, double risk, Result& result, GuardFactors& factors);

/// The same for a single cell.
inline void decide(const plan::Limit& limit, const AttemptsEstimate& estimate, const Scatter& scatter,
                   double instrument, const ReferenceValue& reference, double risk, Result& result) {
  GuardFactors factors;
  decide(limit, estimate, scatter, instrument, reference, risk, result, factors);
}

}  // namespace assay::judge
