// charts: scores, and limits that follow from a budget of false flags. Only arithmetic of portable_math.h.
#pragma once

#include <cstddef>
#include <vector>

namespace assay::drift {

/// Slacks of the two charts: shifts of one and of two deviations are found fastest.
inline constexpr double kSmallSlack = 0.5, kLargeSlack = 1;

/// Fewer peers than this give no common shift of a night: it would look like a unit's.
inline constexpr std::size_t kPeersForShift = 4;

/// Visits between false flags of a one-sided CUSUM of independent standard normal scores (Siegmund 1985): slack `k`,
/// limit `h`.
double run_length(double k, double h);

/// The limit at which run_length(k, h) is `visits`; 1 at least.
double limit_for(double k, double visits);

/// Scores by rank: of `count` peers the one that fell `i`-th most has -quantile((i + 0.5) / count) of the standard
/// normal distribution, so the worst is the largest. Error below 1e-6.
std::vector<double> rank_scores(std::size_t count);

/// The standard normal score of a residual `t` of Student's distribution (Wallace 1959), signed so that a fall is above
/// 0; error below 0.02 from 10 degrees of freedom and |score| < 5.
double student_score(double t, double degrees);

/// P(X >= `least`) of a Poisson distribution of this `mean`.
double poisson_tail(double mean, double least);

/// The least number of earlier visits at which `units` that are tested again `times` in each of `nights` nights are
/// flagged at most `flags` times by chance: a unit as before is below all n earlier ones `times` times with probability
/// 1 / C(n + times, times), for any distribution.
int cliff_history(double flags, double nights, double units, int times);

/// The median; `values` is reordered and must not be empty.
double median_of(std::vector<double>& values);

}  // namespace assay::drift
