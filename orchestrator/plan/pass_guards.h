// pass_guards: the margins beyond a limit from which means pass, and chi-squared, which deviations follow.
#pragma once

#include <map>
#include <random>
#include <vector>

#include "orchestrator/plan/pass_chance.h"

namespace assay::plan {

/// Deviations are no less, for they divide.
inline constexpr double kLeastDeviation = 1e-12;
inline constexpr double kDensity = 0.3989422804014327;  ///< 1 / sqrt(2 pi)
inline constexpr double kNever = 1e9;                   ///< a margin that no mean has
inline constexpr int kPooledParts = 12;                 ///< of the pooled variance

/// The quantile of chi-squared at 0 < `p` < 1, by halving its series (Abramowitz & Stegun 6.5.29); from 200 degrees on
/// by Wilson & Hilferty (1931). 0 without a degree.
double chi_squared(double p, double degrees);

/// The share of chi-squared that is above `value`, by the same series and approximation.
double chi_squared_tail(double value, double degrees);

/// A value of chi-squared and its share.
struct Squares {
  double value = 0, share = 1;
};

/// `parts` of them, and further ones of the largest `tail` of all if that is below 1; a single 0 without a degree.
std::vector<Squares> squares_of(double degrees, double tail, int parts);

/// Made up: a sum of exponential variables, and of one squared normal one for the odd degree.
double made_up_chi_squared(double degrees, std::mt19937_64& random);

/// Student's t at 1 - `risk` for 8 degrees of freedom or more, by its expansion around the normal quantile (Abramowitz
/// & Stegun 26.7.5); error below 1e-3.
double pooled_quantile(double risk, double degrees);

/// The margin of a mean that is beyond the limit by a band of this share of itself.
double margin_of(double band, Bound bound);

/// The margin with which a cell passes by the deviation of its own attempts, or by the stated one.
class OwnGuard {
 public:
  OwnGuard(double risk, const StatedUncertainty& stated, Bound bound);

  /// `deviation`: between `attempts`, as a share of the limit.
  double operator()(double deviation, int attempts);

 private:
  double band(double own, int attempts);
  /// Student's t, taken once for degrees of freedom within 1 % of each other.
  double quantile(double degrees);

  double risk_, normal_;  ///< the latter: the normal quantile at 1 - the risk
  StatedUncertainty stated_;
  Bound bound_;
  std::map<int, double> known_;
};

}  // namespace assay::plan
