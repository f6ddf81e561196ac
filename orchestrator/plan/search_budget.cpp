// search_budget: computes the numbers of search_budget.h; the plan states them and the search keeps to them.
#include "orchestrator/plan/search_budget.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::plan {
namespace {

/// Per bisection step: enough for five nodes or two pairs, or for one that shows in half of its tests only.
constexpr std::size_t kTestsPerStep = 12;
/// A node takes about one test for each bisection step and three to confirm it; a pair, which has two bisections, about
/// three. It must cover the dearest, because findings pay for the next search.
constexpr std::size_t kTestsPerStepAndCulprit = 3;
constexpr std::size_t kMostTimesBase = 4;
constexpr std::size_t kFewestGroups = 4;
constexpr std::size_t kPairsUpTo = 11;

}  // namespace

Screening screening_of(std::size_t nodes) {
  if (nodes <= kPairsUpTo) return {.size = 2, .groups = nodes / 2};
  const double size = std::min(std::round(2 * std::sqrt(static_cast<double>(nodes))),
                               std::floor(static_cast<double>(nodes) / kFewestGroups));
  const auto groups = static_cast<std::size_t>(std::round(static_cast<double>(nodes) / size));
  return {.size = nodes / groups, .groups = groups};
}

std::size_t usual_tests(std::size_t nodes) {
  constexpr std::size_t kConfirming = 4;
  return screening_of(nodes).groups + static_cast<std::size_t>(std::bit_width(nodes)) + kConfirming;
}

std::size_t SearchBudget::allowed(std::size_t culprits) const { return std::min(most, base + per_culprit * culprits); }

SearchBudget budget_for(std::size_t nodes) {
  const auto steps = static_cast<std::size_t>(std::bit_width(nodes));
  const std::size_t base = screening_of(nodes).groups + kTestsPerStep * steps;
  return {.base = base, .per_culprit = kTestsPerStepAndCulprit * steps, .most = kMostTimesBase * base};
}

}  // namespace assay::plan
