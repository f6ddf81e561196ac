// edge_times: exchanges messages with one peer after the other, in the stages that step_edges.h gives, and times each
// there and back.
#include "workloads/train/engine/edge_times.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "probes/gloo/mesh.h"

namespace assay::train {
namespace {

constexpr std::uint64_t kEdgeTag = 10;  // apart from those of ring_wire and of fault_resume

}  // namespace

std::vector<std::pair<std::size_t, double>> edge_times(gloo::Mesh& mesh, std::int64_t rank,
                                                       const std::vector<Edge>& edges,
                                                       const std::vector<std::vector<std::size_t>>& stages, int trips) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::byte> sent(kEdgeMessage), received(kEdgeMessage);
  gloo::Window out = mesh.window(sent.data(), sent.size()), in = mesh.window(received.data(), received.size());
  std::vector<std::pair<std::size_t, double>> found;
  for (const auto& stage : stages) {
    mesh.barrier();
    const auto mine = std::ranges::find_if(
        stage, [&](std::size_t edge) { return edges[edge].one == rank || edges[edge].other == rank; });
    if (mine == stage.end()) continue;
    const bool first = edges[*mine].one == rank;
    const int peer = static_cast<int>(first ? edges[*mine].other : edges[*mine].one);
    double shortest_s = std::numeric_limits<double>::infinity();
    for (int trip = 0; trip < trips; ++trip) {
      const auto begin = Clock::now();
      in.receive(peer, kEdgeTag, 0, kEdgeMessage);
      if (!first) in.wait_received();
      out.send(peer, kEdgeTag, 0, kEdgeMessage);
      if (first) in.wait_received();
      out.wait_sent();
      shortest_s = std::min(shortest_s, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    if (first) found.emplace_back(*mine, shortest_s);
  }
  return found;
}

}  // namespace assay::train
