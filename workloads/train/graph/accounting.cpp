// accounting: adds up the operations of all ranks, and computes the same sums from closed forms. The two share only the
// sizes of the model.
#include "workloads/train/graph/accounting.h"

namespace assay::train {
namespace {

void add(StepSums& to, const StepSums& more, std::int64_t times) {
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
std::int64_t routed_weights(const ModelShape& m) {
  return m.moe ? m.mixtures() * m.moe->experts * 3 * m.hidden * m.moe->ffn : 0;
}

std::int64_t norms(const ModelShape& m) {
  std::int64_t sum = m.hidden;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) sum += norm_weights(m, layer);
  return sum;
}

}  // namespace

StepSums sums_of(const std::vector<Op>& ops) {
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

StepSums summed_graphs(const ModelShape& model, const ParallelPlan& plan) {
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

StepSums closed_forms(const ModelShape& model, const ParallelPlan& plan) {
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

}  // namespace assay::train
