// step_edges: which two ranks on different nodes exchange messages in a step, and the quality of the path between them
// by the time of these messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/train/graph/parallel_plan.h"

namespace assay::train {

/// Each value over the median of the others; 1 if there is no other.
inline std::vector<double> ratio_to_others(const std::vector<double>& values) {
  std::vector<double> shares(values.size(), 1);
  if (values.size() < 2) return shares;
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const std::size_t others = sorted.size() - 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto own = static_cast<std::size_t>(std::ranges::lower_bound(sorted, values[i]) - sorted.begin());
    const auto other = [&](std::size_t index) { return sorted[index < own ? index : index + 1]; };
    const double middle = others % 2 == 1 ? other(others / 2) : (other(others / 2 - 1) + other(others / 2)) / 2;
    shares[i] = values[i] / middle;
  }
  return shares;
}

/// Two ranks that exchange messages; `one` is the smaller.
struct Edge {
  std::int64_t one = 0, other = 0;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// The edges of a step between nodes of `ranks_per_node` ranks each, in order: neighbours in the ring of each group,
/// all pairs of ranks that share experts, and neighbours in the pipeline.
std::vector<Edge> edges_of(const ParallelPlan& plan, std::int64_t ranks_per_node);

/// The indices of `edges` in stages, in each of which no node is in more than one: edges timed together do not share a
/// port.
std::vector<std::vector<std::size_t>> stages_of(const std::vector<Edge>& edges, std::int64_t ranks_per_node);

/// By edge, its time over the median of the others; nothing if there is no other.
std::optional<std::vector<double>> edge_shares(const std::vector<double>& time_s);

}  // namespace assay::train
