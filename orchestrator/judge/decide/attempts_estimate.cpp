// attempts_estimate: computes the statistic of each attempt, their mean, and order-statistic bounds from all samples;
// see attempts_estimate.h.
#include "orchestrator/judge/decide/attempts_estimate.h"

#include <algorithm>
#include <cmath>

#include "probes/core/portable_math.h"

namespace assay::judge {
namespace {

constexpr double kMostCorrelation =
    0.97;                        // beyond it an attempt is as good as one sample, and the factor without limit
constexpr double kNoRisk = 0.5;  // a bound with this risk is the quantile itself

AttemptsEstimate extreme_of(std::span<const Measurement* const> attempts, plan::Statistic statistic) {
  AttemptsEstimate estimate{.extreme = true};
  const bool least = statistic == plan::Statistic::min;
  for (const Measurement* attempt : attempts)
    estimate.each.push_back(least ? std::ranges::min(attempt->samples) : std::ranges::max(attempt->samples));
  estimate.value = least ? std::ranges::min(estimate.each) : std::ranges::max(estimate.each);
  return estimate;
}

/// Half of the interval over the normal quantile of its level, squared.
double variance_of(const Interval& interval) {
  constexpr double kHighestLevel = 1 - 1e-12;  // the quantile of 1 is infinite
  const double z = -normal_quantile((1 - std::min(interval.level, kHighestLevel)) / 2);
  const double deviation = (interval.high - interval.low) / 2 / z;
  return deviation * deviation;
}

/// The correlation of neighbours with the bias of short series taken off.
double corrected(double correlation, double samples) {
  if (samples <= 3) return 0;
  return std::clamp((samples * correlation + 1) / (samples - 3), 0.0, kMostCorrelation);
}

}  // namespace

std::optional<AttemptsEstimate> estimate_attempts(std::span<const Measurement* const> attempts,
                                                  plan::Statistic statistic, const Sureness& sureness) {
  const auto quantile = plan::quantile_of(statistic);
  if (!quantile) return extreme_of(attempts, statistic);
  AttemptsEstimate estimate;
  std::vector<double> all;
  double variance = 0;
  double correlation = 0;
  for (const Measurement* attempt : attempts) {
    const auto interval = order_statistic_interval(attempt->samples, *quantile, sureness.confidence);
    if (!interval) return std::nullopt;
    variance += variance_of(*interval);
    correlation += lag_one_correlation(attempt->samples);
    estimate.each.push_back(percentile(attempt->samples, *quantile));
    all.insert(all.end(), attempt->samples.begin(), attempt->samples.end());
  }
  const auto count = static_cast<double>(attempts.size());
  const Moments runs = moments(estimate.each);
  estimate.value = runs.mean;
  estimate.between = runs.standard_deviation();
  estimate.correlation = corrected(correlation / count, static_cast<double>(all.size()) / count);
  estimate.within = std::sqrt(variance / count * (1 + estimate.correlation) / (1 - estimate.correlation));
  estimate.interval = order_statistic_interval(all, *quantile, sureness.confidence);
  if (sureness.risk >= kNoRisk) return estimate;
  estimate.low_bound = lower_quantile_bound(all, *quantile, sureness.risk);
  estimate.high_bound = upper_quantile_bound(all, *quantile, sureness.risk);
  if (!estimate.low_bound || !estimate.high_bound) return std::nullopt;
  return estimate;
}

std::optional<AttemptsEstimate> ratio_of(const AttemptsEstimate& on, const AttemptsEstimate& off, bool higher) {
  AttemptsEstimate estimate{.ratio = true, .correlation = std::max(on.correlation, off.correlation)};
  std::vector<double> logarithms;
  for (std::size_t i = 0; i < on.each.size(); ++i) {
    if (!(on.each[i] > 0) || !(off.each[i] > 0)) return std::nullopt;
    const double ratio = higher ? on.each[i] / off.each[i] : off.each[i] / on.each[i];
    estimate.each.push_back(ratio);
    logarithms.push_back(portable_log(ratio));
  }
  const Moments runs = moments(logarithms);
  estimate.value = portable_exp(runs.mean);
  estimate.between = estimate.value * runs.standard_deviation();
  estimate.within = estimate.value * portable_hypot(on.within / on.value, off.within / off.value);
  return estimate;
}

}  // namespace assay::judge
