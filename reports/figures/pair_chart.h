// pair_chart: every pair of a requirement as a matrix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "reports/figures/captions.h"
#include "reports/figures/heat.h"
#include "reports/figures/node_places.h"

namespace assay::figures {

/// Meaning of a pair's figure for the two.
enum class Direction {
  none,      ///< both alike: the pair is in both cells
  forward,   ///< from the first to the second
  backward,  ///< from the second to the first
};

/// The direction in the name of a metric: forward, backward, or none.
Direction direction_of(const std::string& metric);

/// The requirement that measures the other direction of the same pairs in the same way, or nullptr.
const plan::Requirement* other_direction(const plan::Profile& profile, const plan::Requirement& requirement);

/// One result on two nodes; directed: from `row` to `column`.
struct PairResult {
  std::string_view row, column;
  bool directed = false;
  const judge::Result* result = nullptr;
};

/// The matrix of `pairs` over `places`: where several results meet in a cell it shows the worst of them (is_worse).
/// Numbers are shown where each place is one node and there are at most kMostNumberedPlaces; they are rounded.
HeatMap pair_map(const std::vector<PairResult>& pairs, const NodePlaces& places);

/// The chart of `requirement`, of scope pair, whose results are `results`; `reverse` are those of the other direction,
/// drawn in the same matrix. Pairs of nodes are one matrix over all nodes; pairs within nodes ("GPU-a>GPU-b") one small
/// matrix a node, of the worst 24 nodes if there are more.
Chart pair_chart(const plan::Plan& plan, const StepIndex& steps, const plan::Requirement& requirement,
                 const std::vector<const judge::Result*>& results, const std::vector<const judge::Result*>& reverse);

}  // namespace assay::figures
