// contrast_words: which side the ratio is on, the two figures, and the pairs that would decide.
#include "orchestrator/judge/decide/contrast_words.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/plan/contrast.h"
#include "probes/core/portable_math.h"
#include "probes/core/scale.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::judge {
namespace {

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
