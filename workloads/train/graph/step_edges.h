// step_edges: which two ranks on different nodes exchange messages in a step, and the quality of the path between them
// by the time of these messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/train/graph/parallel_plan.h"

namespace assay::train {

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
