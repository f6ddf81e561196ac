// search_budget: how many extra tests a plan allows for locating faulty nodes in a group that missed its limit.
#pragma once

#include <cstddef>
#include <vector>

namespace assay::plan {

struct Plan;
struct PlannedSearch;

/// The disjoint groups of one size that a search compares first.
struct Screening {
  std::size_t size = 0;    ///< nodes of each group
  std::size_t groups = 0;  ///< at least four, so that they can be compared; the remaining nodes are in none
};

/// The screening of `nodes` nodes: groups of about 2 sqrt(nodes) nodes, and of pairs up to eleven nodes.
Screening screening_of(std::size_t nodes);

/// The rule by which a search may ask for tests: `base`, and `per_culprit` more for everything that it has found, but
/// never more than `most`. All 0: no search. It belongs into the plan.
struct SearchBudget {
  std::size_t base = 0, per_culprit = 0, most = 0;

  /// How many tests are allowed once `culprits` were found.
  [[nodiscard]] std::size_t allowed(std::size_t culprits) const;
  friend bool operator==(const SearchBudget&, const SearchBudget&) = default;
};

/// The budget of a search among `nodes` nodes: the screening and twelve tests for each bisection step, three more for
/// each bisection step and culprit, and four times the base at most.
SearchBudget budget_for(std::size_t nodes);

/// A search for each step of `plan` on a group or on the whole, with its budget. One of growing groups with a knee also
/// has as many tests for that as leave, with the groups that are planned, 2 log2(nodes) steps of the figure in all.
std::vector<PlannedSearch> planned_searches(const Plan& plan);

/// Tests that a search for one faulty node usually takes among `nodes` nodes: the screening, a bisection, two tests
/// that confirm and two of all others together.
std::size_t usual_tests(std::size_t nodes);

}  // namespace assay::plan
