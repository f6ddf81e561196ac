// chance: Benjamini and Hochberg's procedure for each requirement, and the smallest effect.
#include "orchestrator/judge/decide/chance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace assay::judge {
namespace {

constexpr double kUncertainties = 3;

/// Whether the result is of a figure that another measurement might see differently.
bool is_uncertain(const Result& result) { return result.false_accept && result.uncertainty && *result.uncertainty > 0; }

/// Probability of a figure at least this bad where the true value is the limit.
double chance_of(const Result& result) { return 1 - *result.false_accept; }

/// The largest probability at which a failure among `chances` is kept; below 0 when none is.
double threshold_of(std::vector<double> chances) {
  std::ranges::sort(chances);
  const auto subjects = static_cast<double>(chances.size());
  for (std::size_t rank = chances.size(); rank > 0; --rank) {
    const double chance = chances[rank - 1];
    if (chance <= kFalseDiscoveries * static_cast<double>(rank) / subjects) return chance;
  }
  return -1;
}

/// Distance of the value beyond the limit that it misses.
double shortfall_of(const Result& result) {
  double most = 0;
  if (result.limit_low) most = std::max(most, *result.limit_low - *result.value);
  if (result.limit_high) most = std::max(most, *result.value - *result.limit_high);
  return most;
}

/// The standard uncertainty of the value that comes from the scatter of attempts.
double between_runs(const Result& result) { return result.terms ? result.terms->repeatability : *result.uncertainty; }

void leave_open(Result& result, std::string_view why) {
  result.outcome = Outcome::conditional_fail;
  if (result.reason.ends_with('.')) result.reason.pop_back();
  result.reason += fmt::format(", but {}: not decided.", why);
}

}  // namespace

void hold_against_chance(Results& results) {
  std::map<std::string_view, std::vector<double>> chances;
  for (const auto& result : results) {
    if (is_uncertain(result)) chances[result.requirement].push_back(chance_of(result));
  }
  std::map<std::string_view, double> thresholds;
  for (auto& [requirement, all] : chances) thresholds.emplace(requirement, threshold_of(all));
  for (auto& result : results) {
    if (result.outcome != Outcome::fail || !is_uncertain(result)) continue;
    const double shortfall = shortfall_of(result);
    if (result.margin && std::abs(*result.margin) < kSmallestEffect) {
      leave_open(result, fmt::format("by less than {:g} % of it", 100 * kSmallestEffect));
    } else if (shortfall < kUncertainties * between_runs(result)) {
      leave_open(result, fmt::format("by less than {:g} standard uncertainties of its attempts", kUncertainties));
    } else if (chance_of(result) > thresholds.at(result.requirement)) {
      leave_open(result,
                 fmt::format("one of {} subjects is that far off by chance", chances.at(result.requirement).size()));
    }
  }
}

}  // namespace assay::judge
