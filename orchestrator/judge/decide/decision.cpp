// decision: computes the uncertainty, the guard band and the outcome of one cell; the rule is stated in decision.h.
#include "orchestrator/judge/decide/decision.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "probes/core/portable_math.h"
#include "probes/core/scale.h"
#include "probes/core/small_samples.h"

namespace assay::judge {
namespace {

constexpr double kSimpleAcceptance = 0.5;  // the risk of a guard band of no width

/// The terms of u at one limit, and their sum.
struct Budget {
  UncertaintyTerms terms;
  double uncertainty = 0;
  double degrees = std::numeric_limits<double>::infinity();
};

double fourth(double value) { return value * value * value * value; }

/// `share`: of the reference, that the limit is.
Budget budget_of(const AttemptsEstimate& estimate, const Scatter& scatter, double instrument,
                 const ReferenceValue& reference, double share) {
  Budget budget;
  UncertaintyTerms& terms = budget.terms;
  if (!estimate.extreme) {
    const double root = std::sqrt(static_cast<double>(estimate.each.size()));
    terms.within = estimate.within / root;
    // A stated deviation is added to the scatter within one process; a measured one includes it.
    const bool stated = estimate.each.size() == 1;
    terms.repeatability = stated ? portable_hypot(scatter.deviation, estimate.within)
                                 : std::max(scatter.deviation, estimate.within) / root;
  }
  terms.instrument = instrument * std::abs(estimate.value);
  terms.reference = share * reference.uncertainty;
  const double whole = portable_hypot(portable_hypot(terms.repeatability, terms.instrument), terms.reference);
  budget.uncertainty = to_12_digits(whole);
  // As shares of u, whose fourth powers neither overflow nor vanish.
  const double inverse = whole > 0 ? fourth(terms.repeatability / whole) / scatter.degrees +
                                         fourth(terms.reference / whole) / reference.degrees
                                   : 0;
  if (inverse > 0 && !estimate.extreme) budget.degrees = to_12_digits(1 / inverse);
  return budget;
}

/// One side of a limit, seen so that larger is better: an upper limit is judged with every sign turned.
struct Side {
  double limit = 0;
  double acceptance = 0;  ///< the limit moved by the guard band to the good side
  double rejection = 0;   ///< and to the other
  double sign = 1;
  std::optional<double> good_bound, bad_bound;  ///< of the samples: must not be beyond the limit to pass, to fail
};

/// Limits an outcome by the samples themselves, and for a single attempt.
enum class Hindrance { none, samples, one_attempt };

/// Compares the numbers that verdict.json shows, so that comparing them by hand gives the same outcome.
Outcome outcome_of(const Side& side, double value, bool single, Hindrance& hindrance) {
  const auto at_least = [&](double number, double bound) { return side.sign * number >= side.sign * bound; };
  const bool meets = at_least(value, side.limit);
  const bool decided = at_least(value, side.acceptance) || (!meets && at_least(side.rejection, value));
  if (decided) {
    const bool samples_agree = meets ? !side.good_bound || at_least(*side.good_bound, side.limit)
                                     : !side.bad_bound || at_least(side.limit, *side.bad_bound);
    hindrance = !samples_agree ? Hindrance::samples : single ? Hindrance::one_attempt : Hindrance::none;
    if (hindrance == Hindrance::none) return meets ? Outcome::pass : Outcome::fail;
  }
  return meets ? Outcome::conditional_pass : Outcome::conditional_fail;
}

/// The guard band of `guard` around `bound`; of ratios in their logarithms.
double moved(double bound, double guard, const AttemptsEstimate& estimate) {
  return estimate.ratio ? bound * portable_exp(guard / estimate.value) : bound + guard;
}

double false_accept_of(const Side& side, const AttemptsEstimate& estimate, const Budget& budget) {
  const double value = estimate.value;
  const double distance = side.sign * (estimate.ratio ? value * portable_log(value / side.limit) : value - side.limit);
  if (budget.uncertainty == 0) return distance >= 0 ? 0 : 1;
  return to_12_digits(student_cdf(-distance / budget.uncertainty, budget.degrees));
}

std::string reason_of(Outcome outcome, Hindrance hindrance, const Side& side, const Result& result, double guard) {
  // One scale for both, so that a value is never rounded onto or across its limit.
  const double pair[] = {*result.value, side.limit};
  const Scale scale = scale_for(pair, result.unit);
  const std::string value = scale.text(*result.value);
  const std::string limit = scale.text(side.limit);
  const bool meets = outcome == Outcome::pass || outcome == Outcome::conditional_pass;
  const bool decided = outcome == Outcome::pass || outcome == Outcome::fail;
  std::string reason = fmt::format("{} {} the limit of {} {}", value, meets ? "meets" : "misses",
                                   side.sign > 0 ? "at least" : "at most", limit);
  if (hindrance == Hindrance::samples) {
    reason += ", but too many of the samples lie on the other side: not decided";
  } else if (hindrance == Hindrance::one_attempt) {
    reason += ", but one attempt cannot tell how runs differ: not decided";
  } else if (!decided && side.sign < 0 && side.limit >= 0 && side.acceptance < 0) {
    reason +=
        fmt::format(", but its guard band of {} is wider than the limit: not decided", for_people(guard, result.unit));
  } else if (!decided) {
    reason += fmt::format(", but by less than the guard band of {}: not decided", for_people(guard, result.unit));
  } else if (guard > 0) {
    reason += fmt::format(" by at least the guard band of {}", for_people(guard, result.unit));
  }
  return reason + ".";
}

}  // namespace

double risk_of(double guard_factor, bool two_stages) {
  if (guard_factor == 0) return kSimpleAcceptance;
  return normal_cdf(-guard_factor) / (two_stages ? 2 : 1);
}

ReferenceValue reference_from(const AttemptsEstimate& estimate, const Scatter& scatter, double instrument) {
  const Budget budget = budget_of(estimate, scatter, instrument, {}, 0);
  return {.value = estimate.value, .uncertainty = budget.uncertainty, .degrees = budget.degrees};
}

double GuardFactors::of(double risk, double degrees) {
  constexpr std::size_t kMost = 4096;  // if the cells differ after all
  if (known_.size() >= kMost) known_.clear();
  const auto [known, is_new] = known_.try_emplace({risk, degrees});
  if (is_new) known->second = student_quantile(1 - risk, degrees);
  return known->second;
}

void decide(const plan::Limit& limit, const AttemptsEstimate& estimate, const Scatter& scatter, double instrument,
            const ReferenceValue& reference, double risk, Result& result, GuardFactors& factors) {
  result.value = estimate.value;
  result.interval = estimate.interval;
  result.each = estimate.each;
  result.bound_low = estimate.low_bound;
  result.bound_high = estimate.high_bound;
  if (estimate.each.size() > 1 && !estimate.extreme) {
    result.between = scatter.deviation;
    result.between_steps = scatter.steps;
  }
  if (limit.reference != plan::Reference::none) result.reference = reference.value;
  const bool single = scatter.unknown && !estimate.extreme;
  bool first = true;
  const auto judge_side = [&](double stated, double sign) {
    const double bound = stated * reference.value;
    const Budget budget = budget_of(estimate, scatter, instrument, reference, stated);
    const double factor = risk >= kSimpleAcceptance ? 0 : factors.of(risk, budget.degrees);
    const double guard = factor * budget.uncertainty;
    const Side side{.limit = bound,
                    .acceptance = moved(bound, sign * guard, estimate),
                    .rejection = moved(bound, -sign * guard, estimate),
                    .sign = sign,
                    .good_bound = sign > 0 ? estimate.low_bound : estimate.high_bound,
                    .bad_bound = sign > 0 ? estimate.high_bound : estimate.low_bound};
    Hindrance hindrance = Hindrance::none;
    const Outcome outcome = outcome_of(side, estimate.value, single, hindrance);
    (sign > 0 ? result.limit_low : result.limit_high) = side.limit;
    (sign > 0 ? result.acceptance_low : result.acceptance_high) = side.acceptance;
    if (!first && outcome <= result.outcome) return;  // outcomes are declared from best to worst
    first = false;
    result.outcome = outcome;
    result.uncertainty = budget.uncertainty;
    result.terms = budget.terms;
    result.guard_factor = factor;
    result.degrees_of_freedom = std::nullopt;
    if (std::isfinite(budget.degrees)) result.degrees_of_freedom = budget.degrees;
    result.false_accept = false_accept_of(side, estimate, budget);
    result.margin = std::nullopt;
    if (side.limit != 0) result.margin = sign * (estimate.value - side.limit) / std::abs(side.limit);
    result.reason = reason_of(outcome, hindrance, side, result, guard);
  };
  if (limit.at_least) judge_side(*limit.at_least, 1);
  if (limit.at_most) judge_side(*limit.at_most, -1);
}

}  // namespace assay::judge
