// search_budget: how many extra tests a plan allows for locating faulty nodes in a group that missed its limit.
#pragma once

#include <cstddef>

namespace assay::plan {

/// Disjoint chunks into which the screening of a search divides `nodes` nodes: about 2 sqrt(nodes) nodes each, at
/// least 8.
std::size_t screening_chunks(std::size_t nodes);

/// A bound on tests that finds five faults among `nodes` nodes with room for contradictions: chunks of the screening
/// plus twelve for each bisection step. It belongs into the plan.
std::size_t test_budget(std::size_t nodes);

}  // namespace assay::plan
