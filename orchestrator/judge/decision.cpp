// decision: estimate, guard band, outcome.
#include "orchestrator/judge/decision.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "probes/core/portable_math.h"
#include "probes/core/scale.h"

namespace assay::judge {
namespace {

/// The share of a distribution below `statistic`; nothing for the extremes of the samples.
std::optional<double> quantile_of(plan::Statistic statistic) {
  switch (statistic) {
    case plan::Statistic::median:
      return 0.5;
    case plan::Statistic::p01:
      return 0.01;
    case plan::Statistic::p05:
      return 0.05;
    case plan::Statistic::p95:
      return 0.95;
    case plan::Statistic::p99:
      return 0.99;
    case plan::Statistic::min:
    case plan::Statistic::max:
      break;
  }
  return std::nullopt;
}

/// One side of a limit, seen so that larger is better: an upper limit is judged with every sign turned.
struct Side {
  double limit = 0;
  double acceptance = 0;  ///< the limit moved by the guard band to the good side
  double rejection = 0;   ///< and to the other
  double sign = 1;
};

/// Compares the numbers that verdict.json shows, so that a reader who compares them comes to the same outcome.
Outcome outcome_of(const Side& side, double value) {
  const auto at_least = [&](double bound) { return side.sign * value >= side.sign * bound; };
  if (at_least(side.acceptance)) return Outcome::pass;
  if (at_least(side.limit)) return Outcome::conditional_pass;
  if (side.sign * value > side.sign * side.rejection) return Outcome::conditional_fail;
  return Outcome::fail;
}

double false_accept_of(const Side& side, double value, double uncertainty) {
  const double distance = side.sign * (value - side.limit);
  if (uncertainty == 0) return distance >= 0 ? 0 : 1;
  return to_12_digits(normal_cdf(-distance / uncertainty));
}

std::string reason_of(Outcome outcome, const Side& side, const Result& result, double guard) {
  // One scale for both, so that a value is never rounded onto or across its limit.
  const double pair[] = {*result.value, side.limit};
  const Scale scale = scale_for(pair, result.unit);
  const std::string value = scale.text(*result.value);
  const std::string limit = scale.text(side.limit);
  const bool meets = outcome == Outcome::pass || outcome == Outcome::conditional_pass;
  const bool decided = outcome == Outcome::pass || outcome == Outcome::fail;
  std::string reason = fmt::format("{} {} the limit of {} {}", value, meets ? "meets" : "misses",
                                   side.sign > 0 ? "at least" : "at most", limit);
  if (!decided) {
    reason += fmt::format(", but by less than the guard band of {}: not decided", for_people(guard, result.unit));
  } else if (guard > 0) {
    reason += fmt::format(" by at least the guard band of {}", for_people(guard, result.unit));
  }
  return reason + ".";
}

}  // namespace

std::optional<Estimate> estimate(std::span<const double> samples, plan::Statistic statistic, double confidence,
                                 double instrument) {
  Estimate result;
  double repeatability = 0;
  const auto quantile = quantile_of(statistic);
  if (!quantile) {
    result.value = statistic == plan::Statistic::min ? std::ranges::min(samples) : std::ranges::max(samples);
  } else {
    result.value = percentile(samples, *quantile);
    result.interval = order_statistic_interval(samples, *quantile, confidence);
    if (!result.interval) return std::nullopt;
    const double z = -normal_quantile((1 - std::min(result.interval->level, 1 - 1e-12)) / 2);
    repeatability = (result.interval->high - result.interval->low) / 2 / z;
  }
  result.uncertainty = to_12_digits(portable_hypot(repeatability, instrument * std::abs(result.value)));
  return result;
}

double guard_factor_for(double guard_factor, int looks) {
  if (looks <= 1 || guard_factor == 0) return guard_factor;
  return -normal_quantile(normal_cdf(-guard_factor) / looks);
}

void decide(const plan::Limit& limit, const Estimate& estimate, const ReferenceValue& reference, double guard_factor,
            Result& result) {
  result.value = estimate.value;
  result.interval = estimate.interval;
  if (limit.reference != plan::Reference::none) result.reference = reference.value;
  bool first = true;
  const auto judge_side = [&](double stated, double sign) {
    const double bound = stated * reference.value;
    const double uncertainty = to_12_digits(portable_hypot(estimate.uncertainty, stated * reference.uncertainty));
    const double guard = guard_factor * uncertainty;
    const Side side{
        .limit = bound, .acceptance = bound + sign * guard, .rejection = bound - sign * guard, .sign = sign};
    const Outcome outcome = outcome_of(side, estimate.value);
    (sign > 0 ? result.limit_low : result.limit_high) = side.limit;
    (sign > 0 ? result.acceptance_low : result.acceptance_high) = side.acceptance;
    if (!first && outcome <= result.outcome) return;  // outcomes are declared from best to worst
    first = false;
    result.outcome = outcome;
    result.uncertainty = uncertainty;
    result.false_accept = false_accept_of(side, estimate.value, uncertainty);
    result.margin = std::nullopt;
    if (side.limit != 0) result.margin = sign * (estimate.value - side.limit) / std::abs(side.limit);
    result.reason = reason_of(outcome, side, result, guard);
  };
  if (limit.at_least) judge_side(*limit.at_least, 1);
  if (limit.at_most) judge_side(*limit.at_most, -1);
}

}  // namespace assay::judge
