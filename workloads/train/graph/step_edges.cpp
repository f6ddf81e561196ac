// step_edges: derives the pairs from the groups, and puts each pair into the first stage in which both ranks are free.
#include "workloads/train/graph/step_edges.h"

#include <set>

#include "workloads/train/graph/step_graph.h"

namespace assay::train {
namespace {

void add(std::set<Edge>& to, std::int64_t a, std::int64_t b, std::int64_t ranks_per_node) {
  if (a / ranks_per_node != b / ranks_per_node) to.insert({.one = std::min(a, b), .other = std::max(a, b)});
}

}  // namespace

std::vector<Edge> edges_of(const ParallelPlan& plan, std::int64_t ranks_per_node) {
  std::set<Edge> all;
  for (std::int64_t rank = 0; rank < plan.world(); ++rank) {
    for (const Group group : {Group::tp, Group::cp, Group::replicas}) {
      const auto members = members_of(plan, group, rank);
      const auto place = std::ranges::find(members, rank) - members.begin();
      add(all, rank, members[sized(place + 1) % members.size()], ranks_per_node);
    }
    for (const std::int64_t other : members_of(plan, Group::ep, rank)) add(all, rank, other, ranks_per_node);
    RankPosition at = position_of(plan, rank);
    const bool last = at.pp + 1 == plan.pp;
    if (last && plan.virtual_stages == 1) continue;
    at.pp = last ? 0 : at.pp + 1;
    add(all, rank, rank_at(plan, at), ranks_per_node);
  }
  return {all.begin(), all.end()};
}

std::vector<std::vector<std::size_t>> stages_of(const std::vector<Edge>& edges, std::int64_t ranks_per_node) {
  std::vector<std::vector<std::size_t>> stages;
  std::vector<std::set<std::int64_t>> taken;  // nodes, by stage
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::int64_t one = edges[i].one / ranks_per_node, other = edges[i].other / ranks_per_node;
    std::size_t stage = 0;
    while (stage < stages.size() && (taken[stage].contains(one) || taken[stage].contains(other))) ++stage;
    if (stage == stages.size()) {
      stages.emplace_back();
      taken.emplace_back();
    }
    stages[stage].push_back(i);
    taken[stage].insert({one, other});
  }
  return stages;
}

std::optional<std::vector<double>> edge_shares(const std::vector<double>& time_s) {
  if (time_s.size() < 2) return std::nullopt;
  return ratio_to_others(time_s);
}

}  // namespace assay::train
