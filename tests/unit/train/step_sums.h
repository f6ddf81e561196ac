// step_sums: what the operations of a step must add up to, by closed forms that share only the sizes of the model, and
// the one order in which all ranks start collectives.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "workloads/train/graph/step_graph.h"

namespace assay::train {

/// FLOPs of a step: 16,384 ranks do more in one than 64 bits can count.
__extension__ using Flop = __int128;

/// Sums over all ranks of one step. Traffic is payload in B as nccl-tests counts it, once for each rank that takes
/// part; messages count if they are sent.
struct StepSums {
  Flop flop = 0;
  std::int64_t tp = 0, pp = 0, ep = 0, cp = 0;  ///< activations and their gradients
  std::int64_t reduced = 0, gathered = 0;       ///< gradients summed over replicas; weights sent back from shards
  std::int64_t optimizer = 0;                   ///< memory traffic of the update
  friend bool operator==(const StepSums&, const StepSums&) = default;
};

inline void add(StepSums& to, const StepSums& more, std::int64_t times) {
  to.flop += more.flop * times;
  to.tp += more.tp * times;
  to.pp += more.pp * times;
  to.ep += more.ep * times;
  to.cp += more.cp * times;
  to.reduced += more.reduced * times;
  to.gathered += more.gathered * times;
  to.optimizer += more.optimizer * times;
}

/// Weights that experts hold, all of them and all layers.
inline std::int64_t routed_weights(const ModelShape& m) {
  return m.moe ? m.mixtures() * m.moe->experts * 3 * m.hidden * m.moe->ffn : 0;
}

inline std::int64_t norms(const ModelShape& m) {
  std::int64_t sum = m.hidden;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) sum += norm_weights(m, layer);
  return sum;
}

/// What `ops` of one rank add up to.
inline StepSums sums_of(const std::vector<Op>& ops) {
  StepSums sums;
  for (const Op& op : ops) {
    sums.flop += op.flop;
    if (op.kind == OpKind::optimizer) sums.optimizer += op.bytes;
    if (op.kind != OpKind::collective) continue;
    if (op.group == Group::tp) sums.tp += op.bytes;
    if (op.group == Group::pp) sums.pp += op.bytes;
    if (op.group == Group::ep) sums.ep += op.bytes;
    if (op.group == Group::cp) sums.cp += op.bytes;
    if (op.role == Role::gradients) sums.reduced += op.bytes;
    if (op.role == Role::weights) sums.gathered += op.bytes;
  }
  return sums;
}

/// The sums over all ranks of the plan, from one rank of each pipeline place, as all others do the same.
inline StepSums summed_graphs(const ModelShape& model, const ParallelPlan& plan) {
  StepSums all;
  for (std::int64_t pp = 0; pp < plan.pp; ++pp) {
    for (std::int64_t dp = 0; dp < plan.dp; ++dp) {
      for (std::int64_t cp = 0; cp < plan.cp; ++cp) {
        const std::int64_t rank = rank_at(plan, {.tp = 0, .cp = cp, .dp = dp, .pp = pp});
        add(all, sums_of(step_graph(model, plan, rank)), plan.tp);
      }
    }
  }
  return all;
}

/// The same by closed forms, only from the model and the plan.
inline StepSums closed_forms(const ModelShape& model, const ParallelPlan& plan) {
  const ModelShape m = with_layers(model, plan.layers);
  constexpr std::int64_t kSingle = 4;
  const std::int64_t tokens = plan.tokens_per_step(), e = plan.element, mixtures = m.mixtures();
  const std::int64_t replicas = plan.replicas();
  StepSums sums;
  sums.flop = Flop{tokens} * flop_per_token(m, plan.seq);
  if (plan.tp > 1) {
    // Two all-reduces forward and two backward in each layer; one at each end; the row sums of the loss.
    std::int64_t token = (4 * m.layers + 2) * m.hidden * e + kSingle;
    if (m.mla) token += 2 * m.layers * (m.mla->q_lora + m.mla->kv_lora + m.mla->rope) * e;
    if (m.moe) token += 2 * mixtures * m.moe->experts * e;  // a router's output, and its gradient
    sums.tp = token * tokens * plan.tp;
  }
  sums.pp = 2 * (plan.pp * plan.virtual_stages - 1) * tokens * m.hidden * e * plan.tp;
  if (plan.pp == 1) sums.pp = 0;
  if (plan.ep > 1) sums.ep = 4 * mixtures * tokens * m.moe->top_k * m.hidden * e * plan.tp;
  // (cp - 1) / cp of the sequence's keys and values for each of the cp ranks, once forward and twice backward.
  const std::int64_t width = m.mla ? (m.mla->kv_lora + m.mla->rope) * plan.tp : 2 * m.kv();
  sums.cp = 3 * m.layers * (plan.cp - 1) * tokens * width * e;
  // Matrices are divided by tp, norms are on each of its ranks. Experts have fewer replicas.
  const std::int64_t experts = routed_weights(m);
  const std::int64_t others = total_parameters(m) - norms(m) - experts + plan.tp * norms(m);
  const std::int64_t expert_replicas = replicas / plan.ep;
  if (replicas > 1) sums.reduced += others * replicas * kSingle;
  if (expert_replicas > 1) sums.reduced += experts * expert_replicas * kSingle;
  const std::int64_t ends = (m.tied ? 1 : 2) * m.vocab * m.hidden + plan.tp * m.hidden;
  if (plan.zero == 1 || plan.zero == 2) sums.gathered = sums.reduced / kSingle * e;
  if (plan.zero == 3) {  // layers before forward and backward of every micro-batch; the ends stay whole
    if (replicas > 1) sums.gathered += 2 * plan.micro_batches * (others - ends) * replicas * e;
    if (expert_replicas > 1) sums.gathered += 2 * plan.micro_batches * experts * expert_replicas * e;
  }
  const bool sharded = plan.zero > 0;
  // ep x expert_replicas ranks share the experts of all.
  sums.optimizer = (others * (sharded ? 1 : replicas) + experts * (sharded ? 1 : expert_replicas)) * adam_bytes(e);
  return sums;
}

/// Share of a step in which a pipeline rank waits for others, where all micro-batches take the same time and messages
/// none: (p - 1) / (v m + p - 1).
constexpr double bubble_share(const ParallelPlan& plan) {
  const double p = static_cast<double>(plan.pp);
  return (p - 1) / (static_cast<double>(plan.virtual_stages * plan.micro_batches) + p - 1);
}
static_assert(bubble_share({.micro_batches = 4, .pp = 4}) == 3.0 / 7);

/// Throws std::runtime_error when two ranks of a group start its collectives in different orders or sizes, or a message
/// has no receiver: such a step never ends. `graphs` has every rank's operations.
inline void check_order(const ParallelPlan& plan, const std::vector<std::vector<Op>>& graphs) {
  using Start = std::tuple<Role, Pass, Motion, std::int64_t, std::int64_t, std::int64_t>;
  const auto starts = [&](std::size_t rank, Group group) {
    std::vector<Start> all;
    for (const Op& op : graphs[rank]) {
      if (op.group == group) all.emplace_back(op.role, op.pass, op.motion, op.layer, op.micro_batch, op.m);
    }
    return all;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> messages;  // sent less received, by both ends
  for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
    const auto own = static_cast<std::int64_t>(rank);
    for (const Group group : {Group::tp, Group::cp, Group::ep, Group::replicas, Group::expert_replicas}) {
      const std::int64_t first = members_of(plan, group, own).front();
      if (first != own && starts(rank, group) != starts(static_cast<std::size_t>(first), group))
        throw std::runtime_error(
            fmt::format("ranks {} and {} of one group start its collectives in different orders", first, rank));
    }
    for (const Op& op : graphs[rank]) {
      if (op.motion == Motion::send) ++messages[{own, op.peer}];
      if (op.motion == Motion::receive) --messages[{op.peer, own}];
    }
  }
  for (const auto& [ends, left] : messages) {
    if (left != 0)
      throw std::runtime_error(
          fmt::format("rank {} sends rank {} {} messages more than are received", ends.first, ends.second, left));
  }
}

}  // namespace assay::train
