// search_budget: computes the numbers of search_budget.h; the plan states them and the search keeps to them.
#include "orchestrator/plan/search_budget.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "orchestrator/plan/plan.h"

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

/// Tests of a knee of one of `requirements`, which `of` serves; 0 if none of them has one. With the planned groups they
/// are at most twice as many as the doublings from one node to the largest group; the last one is of the nodes that
/// came last (knee_search.h).
std::size_t knee_tests(const Plan& plan, const Step& of, const std::vector<std::string>& requirements) {
  const auto found =
      std::ranges::find_if(requirements, [&](const auto& id) { return plan.requirement(id)->knee.has_value(); });
  if (found == requirements.end()) return 0;
  std::size_t sizes = 0, largest = 0;
  for (const auto& step : plan.steps) {
    if (step.rail != of.rail || std::ranges::find(step.requirements, *found) == step.requirements.end()) continue;
    ++sizes;
    largest = std::max(largest, step.nodes.size());
  }
  const auto most = 2 * static_cast<std::size_t>(std::bit_width(largest - 1));
  return most > sizes ? most - sizes : 1;
}

}  // namespace

std::vector<PlannedSearch> planned_searches(const Plan& plan) {
  std::vector<PlannedSearch> all;
  for (const auto& step : plan.steps) {
    PlannedSearch search{.step = step.id, .budget = {}};
    for (const auto& id : step.requirements) {
      const Requirement& judged = *plan.requirement(id);
      // A switch or a setting is a matter of all nodes, and an open path one of the fabric.
      if (judged.contrast || judged.demand || judged.by == Grouping::path) continue;
      if (step.nodes.size() > 1 && (judged.scope == JudgedScope::group || judged.scope == JudgedScope::cluster))
        search.requirements.push_back(id);
    }
    if (search.requirements.empty()) continue;
    if (step.nodes.size() == 2) {
      search.reason = "a group of two nodes cannot be split further";
    } else {
      search.budget = budget_for(step.nodes.size());
      search.knee = knee_tests(plan, step, search.requirements);
    }
    all.push_back(std::move(search));
  }
  return all;
}

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
