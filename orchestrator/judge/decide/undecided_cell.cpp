// undecided_cell: decides one cell in the order that judge.h states: decision, findings, doubt, conditions. Of a
// contrast the words say on which side the ratio is, the two figures, and how many pairs would decide.
#include "orchestrator/judge/decide/undecided_cell.h"

#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/plan/contrast.h"
#include "probes/core/portable_math.h"
#include "probes/core/scale.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::judge {
namespace {

/// Calls `act` for each number of `result` that may be missing.
template <class R, class Act>
void each_number(R& result, Act act) {
  EachField io{[&]<class T>(const char*, T& member) {
    if constexpr (Of<T, std::optional<double>>) act(member);
  }};
  fields(io, result);
}

bool finite(const Result& result) {
  bool all = true;
  each_number(result, [&](const auto& number) { all = all && (!number || std::isfinite(*number)); });
  return all;
}

/// JSON has no infinity, so a verdict that cannot be computed has no numbers.
void clear_numbers(Result& result) {
  each_number(result, [](auto& number) { number.reset(); });
  result.interval.reset();
  result.terms.reset();
  result.each.clear();
}

std::string percent(double share) { return for_people(share * 100, "1") + " %"; }

/// "nvls made no difference", "nvls gains only 2.1 %".
std::string effect(const plan::Contrast& contrast, const Result& result) {
  const double ratio = *result.value;
  const double guard = result.guard_factor.value_or(0) * result.uncertainty.value_or(0) / ratio;
  const bool fails = result.outcome == Outcome::fail || result.outcome == Outcome::conditional_fail;
  if (result.outcome == Outcome::fail && std::abs(portable_log(ratio)) <= guard)
    return contrast.parameter + " made no difference";
  if (ratio < 1) return fmt::format("{} makes it {} worse", contrast.parameter, percent(1 - ratio));
  return fmt::format("{} gains {}{}", contrast.parameter, fails ? "only " : "", percent(ratio - 1));
}

}  // namespace

UndecidedCell settled_cell(Result result) { return {.result = std::move(result), .settled = true}; }

UndecidedCell unchecked_cell(Result result, const std::string& what) {
  result.required = false;
  result.outcome = Outcome::not_measured;
  result.unchecked = true;
  result.reason = "Not checked: " + what;
  return settled_cell(std::move(result));
}

void settle(UndecidedCell& cell, const Scatter& scatter, GuardFactors& factors) {
  if (cell.settled) return;
  cell.settled = true;
  Result& result = cell.result;
  const auto inconclusive = [&](std::string reason) {
    result.outcome = Outcome::inconclusive;
    result.reason = std::move(reason);
  };
  decide(cell.requirement->limit, cell.estimate, scatter, cell.instrument, cell.reference, cell.risk, result, factors);
  if (cell.requirement->contrast)
    result.reason = contrast_words(*cell.requirement, cell.unit, scatter, cell.risk, result);
  if (!finite(result)) {
    clear_numbers(result);
    return inconclusive("The limit or the samples are outside the range of the arithmetic.");
  }
  if (!cell.requirement->contrast)
    note_findings(cell.seen, cell.estimate, scatter.unsteady, cell.requirement->statistic, result);
  const bool passes = result.outcome == Outcome::pass || result.outcome == Outcome::conditional_pass;
  if (result.outcome != Outcome::pass && !cell.words.empty()) result.reason += fmt::format(" {}.", cell.words);
  if (passes && !cell.doubt.empty()) inconclusive(std::move(cell.doubt));
  if (!cell.unmet.empty()) inconclusive(std::move(cell.unmet));
}

int pairs_to_decide(int pairs, double distance, double deviation, bool is_known, double risk) {
  for (int n = pairs + 1; n <= kMostPairs; ++n) {
    const double factor = is_known ? -normal_quantile(risk) : student_quantile(1 - risk, n - 1);
    if (factor * deviation / std::sqrt(n) <= distance) return n;
  }
  return 0;
}

std::string contrast_words(const plan::Requirement& requirement, const std::string& unit, const Scatter& scatter,
                           double risk, const Result& result) {
  const plan::Contrast& contrast = *requirement.contrast;
  const double figures[] = {*result.with, *result.without};
  const Scale scale = scale_for(figures, unit);
  std::string words = fmt::format("{}: {} with it, {} without; {}", effect(contrast, result), scale.text(*result.with),
                                  scale.text(*result.without), plan::gain_words(contrast));
  if (result.outcome == Outcome::pass || result.outcome == Outcome::fail) return words + ".";
  if (scatter.unknown) return words + ", but one pair of attempts cannot tell how runs differ: not decided.";
  const double relative = *result.uncertainty / *result.value;
  const double distance = std::abs(portable_log(*result.value / *result.limit_low));
  const int pairs = pairs_to_decide(static_cast<int>(result.each.size()), distance, scatter.deviation / *result.value,
                                    std::isinf(scatter.degrees), risk);
  words += fmt::format(", and the ratio is uncertain by {} (standard uncertainty): not decided. ", percent(relative));
  if (pairs == 0) return words + fmt::format("More than {} pairs of attempts would be needed.", kMostPairs);
  return words + fmt::format("About {} pairs of attempts would decide.", pairs);
}

}  // namespace assay::judge
