// between_runs: pools the relative variances between attempts of each requirement over its steps; the rule of pooling
// is in between_runs.h.
#include "orchestrator/judge/decide/between_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "orchestrator/plan/repeat.h"
#include "probes/core/small_samples.h"

namespace assay::judge {
namespace {

constexpr double kMostOfMedian = 9;  // three deviations: one shaken node does not widen the guard bands of all
constexpr double kUnsteadyProbability = 1e-3;

double relative_variance(const AttemptsEstimate& estimate) {
  const double share = estimate.between / estimate.value;
  return share * share;
}

}  // namespace

bool tells_of_runs(const AttemptsEstimate& estimate) {
  return !estimate.extreme && estimate.each.size() > 1 && estimate.value != 0;
}

StatedScatter stated_scatter(const Description::OwnMetric& metric,
                             const std::optional<plan::Reproducibility>& reproducibility) {
  StatedScatter stated{.least = metric.between_runs};
  if (reproducibility) stated.reproducibility = reproducibility->u;
  return stated;
}

Scatter own_scatter(const AttemptsEstimate& estimate, const StatedScatter& stated) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double size = std::abs(estimate.value);
  const double least = stated.least * size;
  if (estimate.each.size() > 1) {
    if (estimate.between < least) return {.deviation = least, .degrees = kInfinite};
    return {.deviation = estimate.between, .degrees = static_cast<double>(estimate.each.size() - 1)};
  }
  if (stated.reproducibility)
    return {.deviation = std::max(*stated.reproducibility * size, least), .degrees = kInfinite};
  if (least > 0) return {.deviation = least, .degrees = 1};
  return {.degrees = kInfinite, .unknown = true};
}

void BetweenRuns::add(const std::string& step, const AttemptsEstimate& estimate) {
  if (!tells_of_runs(estimate)) return;
  pooled_.reset();
  OfStep& one = steps_[step];
  one.sum += relative_variance(estimate);
  one.subjects += 1;
  one.degrees = std::max(one.degrees, static_cast<double>(estimate.each.size() - 1));
}

const BetweenRuns::Pooled& BetweenRuns::pooled() {
  if (pooled_) return *pooled_;
  std::vector<double> variances;
  for (const auto& [step, one] : steps_) variances.push_back(one.sum / one.subjects);
  const double most = kMostOfMedian * median(variances);
  Pooled result;
  for (const auto& [step, one] : steps_) {
    result.variance += one.degrees * std::min(one.sum / one.subjects, most);
    result.degrees += one.degrees;
  }
  result.variance /= result.degrees;
  return pooled_.emplace(result);
}

Scatter BetweenRuns::of(const AttemptsEstimate& estimate, const StatedScatter& stated) {
  Scatter own = own_scatter(estimate, stated);
  if (!tells_of_runs(estimate) || steps_.size() < plan::kFewestPooledSteps) return own;
  const Pooled& all = pooled();
  const double variance = relative_variance(estimate);
  const double probability =
      variance <= all.variance ? 1
      : all.variance > 0
          ? f_upper_tail(variance / all.variance, static_cast<double>(estimate.each.size() - 1), all.degrees)
          : 0;
  if (probability < kUnsteadyProbability) {
    own.unsteady = true;
    return own;
  }
  return {
      .deviation = std::sqrt(all.variance) * std::abs(estimate.value), .degrees = all.degrees, .steps = steps_.size()};
}

}  // namespace assay::judge
