// edge_times: one rank's part in timing the ways to the ranks that it exchanges messages with.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/train/graph/step_edges.h"

namespace assay::gloo {
class Mesh;
}  // namespace assay::gloo

namespace assay::train {

/// B of a message there, and of the one back: a slow way shows by its delay and by its rate.
inline constexpr std::size_t kEdgeMessage = 256 << 10;

/// The edges of `rank` that it has the smaller number of, with the shortest of `trips` round trips on each, in s: what
/// others take of a processor lengthens some. Every rank of the mesh calls it with the same lists, the edges and their
/// stages. Throws as the mesh.
std::vector<std::pair<std::size_t, double>> edge_times(gloo::Mesh& mesh, std::int64_t rank,
                                                       const std::vector<Edge>& edges,
                                                       const std::vector<std::vector<std::size_t>>& stages, int trips);

}  // namespace assay::train
