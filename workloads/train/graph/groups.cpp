// groups: which parameters are reduced together and in which groups.
#include "workloads/train/graph/step_graph.h"

namespace assay::train {

std::vector<Bucket> buckets_of(const ModelShape& model, const ParallelPlan& plan, std::int64_t pp_rank) {
  const ModelShape m = with_layers(model, plan.layers);
  const std::int64_t ends = m.vocab * m.hidden / plan.tp;
  std::vector<Bucket> buckets;
  if (pp_rank == plan.pp - 1) buckets.push_back({.end = Role::head, .elements = (m.tied ? 0 : ends) + m.hidden});
  for (std::int64_t piece = plan.virtual_stages - 1; piece >= 0; --piece) {
    const std::int64_t begin = (piece * plan.pp + pp_rank) * plan.layers_per_piece();
    for (std::int64_t layer = begin + plan.layers_per_piece() - 1; layer >= begin; --layer) {
      const std::int64_t routed = m.is_mixture(layer) ? m.moe->experts * 3 * m.hidden * m.moe->ffn : 0;
      buckets.push_back(
          {.layer = layer,
           .elements = (attention_weights(m) + mlp_weights(m, layer) - routed) / plan.tp + norm_weights(m, layer)});
      if (routed > 0) buckets.push_back({.layer = layer, .experts = true, .elements = routed / (plan.tp * plan.ep)});
    }
  }
  if (pp_rank == 0) buckets.push_back({.end = Role::embed, .elements = ends});
  return buckets;
}

std::vector<std::int64_t> members_of(const ParallelPlan& plan, Group group, std::int64_t rank) {
  const std::int64_t replicas = plan.replicas(), place = plan.tp * replicas;
  const std::int64_t tp = rank % plan.tp, replica = rank / plan.tp % replicas, pp = rank / place;
  const auto every = [](std::int64_t first, std::int64_t stride, std::int64_t count) {
    std::vector<std::int64_t> members(sized(count));
    for (std::int64_t i = 0; i < count; ++i) members[sized(i)] = first + i * stride;
    return members;
  };
  // The rank of the same tp and pp that has another replica's part.
  const auto at = [&](std::int64_t other) { return pp * place + other * plan.tp + tp; };
  switch (group) {
    case Group::tp:
      return every(rank - tp, 1, plan.tp);
    case Group::cp:
      return every(at(replica / plan.cp * plan.cp), plan.tp, plan.cp);
    case Group::pp:
      return every(rank - pp * place, place, plan.pp);
    case Group::replicas:
      return every(at(0), plan.tp, replicas);
    case Group::ep:
      return every(at(replica / plan.ep * plan.ep), plan.tp, plan.ep);
    case Group::expert_replicas:
      return every(at(replica % plan.ep), plan.tp * plan.ep, replicas / plan.ep);
    case Group::none:
      break;
  }
  return {rank};
}

}  // namespace assay::train
