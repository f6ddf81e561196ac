// pass_guards: see pass_guards.h.
#include "orchestrator/plan/pass_guards.h"

#include <algorithm>
#include <cmath>

#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr double kMany = 200;  // degrees of freedom

/// Chi-squared at `z` standard deviations of a normal variable (Wilson & Hilferty 1931).
double near_chi_squared(double z, double degrees) {
  const double spread = 2 / (9 * degrees), root = std::max(1 - spread + z * std::sqrt(spread), 0.0);
  return degrees * root * root * root;
}

/// Adds the middles of `parts` from `low` to `high`, of equal width in the roots, with `share` of chi-squared in all.
void add_squares(std::vector<Squares>& all, double degrees, double low, double high, double share, int parts) {
  const double from = std::sqrt(low), step = (std::sqrt(high) - from) / parts;
  const auto begin = all.size();
  double sum = 0;
  for (int i = 0; i < parts; ++i) {
    const double root = from + (i + 0.5) * step;
    all.push_back({root * root, portable_exp((degrees - 1) * portable_log(root) - root * root / 2)});
    sum += all.back().share;
  }
  for (auto i = begin; i < all.size(); ++i) all[i].share *= share / sum;
}

}  // namespace

double chi_squared(double p, double degrees) {
  if (degrees <= 0) return 0;
  double low = 0, high = near_chi_squared(normal_quantile(p), degrees) * 2 + 1;
  if (degrees > kMany) return (high - 1) / 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (chi_squared_tail(middle, degrees) > 1 - p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double chi_squared_tail(double value, double degrees) {
  if (value <= 0) return 1;
  if (degrees <= 0) return 0;
  if (degrees > kMany) {
    const double spread = 2 / (9 * degrees);
    return normal_cdf((1 - spread - portable_exp(portable_log(value / degrees) / 3)) / std::sqrt(spread));
  }
  const double shape = degrees / 2, half = value / 2;
  double term = 1, sum = 1;
  for (double k = 1; term > 1e-12 * sum; ++k) sum += term *= half / (shape + k);
  return 1 - portable_exp(shape * portable_log(half) - half - portable_log_gamma(shape + 1)) * sum;
}

std::vector<Squares> squares_of(double degrees, double tail, int parts) {
  if (degrees <= 0) return {{}};
  constexpr double kBeyond = 1e-6;
  constexpr double kEnds[] = {1, 0.75, 0.5, 0.25, 0.1, 0.02, 0};  // of the parts of the tail, as shares of it
  std::vector<Squares> all;
  add_squares(all, degrees, 0, chi_squared(1 - (tail < 1 ? tail : kBeyond), degrees), tail < 1 ? 1 - tail : 1, parts);
  for (std::size_t i = 1; tail < 1 && i < std::size(kEnds); ++i)
    all.push_back({chi_squared(1 - tail * (kEnds[i - 1] + kEnds[i]) / 2, degrees), tail * (kEnds[i - 1] - kEnds[i])});
  return all;
}

double made_up_chi_squared(double degrees, std::mt19937_64& random) {
  constexpr double kMany = 16;
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  if (degrees > kMany) return near_chi_squared(normal_quantile(uniform()), degrees);
  const int whole = static_cast<int>(degrees);
  double product = 1;
  for (int i = 0; i < whole / 2; ++i) product *= uniform();
  const double z = whole % 2 == 1 ? normal_quantile(uniform()) : 0;
  return z * z - 2 * portable_log(product);
}

double pooled_quantile(double risk, double degrees) {
  const double z = -normal_quantile(risk), square = z * z;
  const double first = z * (square + 1) / 4;
  const double second = z * (5 * square * square + 16 * square + 3) / 96;
  const double third = z * (3 * square * square * square + 19 * square * square + 17 * square - 15) / 384;
  return z + (first + (second + third / degrees) / degrees) / degrees;
}

double margin_of(double band, Bound bound) {
  constexpr double kMostOfRatio = 20;
  if (bound == Bound::upper) return band / (1 + band);
  if (bound == Bound::ratio) return portable_exp(std::min(band, kMostOfRatio)) - 1;
  return band < 1 ? band / (1 - band) : kNever;
}

OwnGuard::OwnGuard(double risk, const StatedUncertainty& stated, Bound bound)
    : risk_(risk), normal_(-normal_quantile(risk)), stated_(stated), bound_(bound) {}

double OwnGuard::operator()(double deviation, int attempts) {
  constexpr int kSteps = 4;  // of an iteration whose changes fall by the band each
  double margin = 0;
  for (int i = 0; i < kSteps && margin < 1;
       ++i) {  // a stated uncertainty is a share of the mean, the deviation is none
    const double mean = bound_ == Bound::upper ? 1 - margin : bound_ == Bound::lower ? 1 + margin : 1;
    margin = margin_of(band(deviation / std::max(mean, kLeastDeviation), attempts), bound_);
  }
  return margin;
}

double OwnGuard::band(double own, int attempts) {
  const bool single = attempts == 1, known = single ? stated_.reproducibility > 0 : own < stated_.between_runs;
  const double least = std::max(single ? stated_.reproducibility : own, stated_.between_runs);
  const double of_mean = least / std::sqrt(attempts), u = portable_hypot(of_mean, stated_.instrument);
  if (known || u == 0) return normal_ * u;
  const double share = of_mean / u;
  return quantile(std::max(attempts - 1, 1) / (share * share * share * share)) * u;  // Welch and Satterthwaite
}

double OwnGuard::quantile(double degrees) {
  constexpr double kNormal = 1e4;
  if (degrees > kNormal) return normal_;
  const int key = static_cast<int>(std::floor(portable_log(degrees) * 100));
  const auto [entry, fresh] = known_.try_emplace(key, 0);
  if (fresh) entry->second = student_quantile(1 - risk_, portable_exp(key / 100.0));
  return entry->second;
}

}  // namespace assay::plan
