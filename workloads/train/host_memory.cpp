// host_memory: which memory each operation reads and writes, settled once.
#include "workloads/train/host_memory.h"

#include <algorithm>

namespace assay::train {
namespace {

/// Finds the memory of one operation after the other.
class Binder {
 public:
  Binder(const ModelShape& model, const ParallelPlan& plan, HostWeights& weights, HostMemory& memory)
      : m_(model), plan_(plan), weights_(weights), memory_(memory), t_(plan.tokens()) {}

  Call bind(const Op& op) {
    Call call = op.kind == OpKind::gemm ? product(op) : Call{};
    call.out = op.kind == OpKind::gemm ? std::span(call.c, sized(op.m * op.n)) : output(op);
    return call;
  }

 private:
  /// Input, output and their gradients of the linear layer `role`.
  struct Linear {
    float *input, *output, *input_gradient, *output_gradient;
  };
  Linear linear(const Op& op) {
    if (op.role == Role::head)
      return {memory_.final_normed.data(), memory_.logits.data(), memory_.normed_gradient.data(),
              memory_.logits.data()};
    LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
    switch (op.role) {
      case Role::qkv:
        return {kept.normed.data(), kept.qkv.data(), memory_.normed_gradient.data(), memory_.qkv_gradient.data()};
      case Role::attention_out:
        return {kept.attended.data(), memory_.sum.data(), memory_.attended_gradient.data(), memory_.gradient.data()};
      case Role::gate_up:
        return {kept.mlp_normed.data(), kept.both.data(), memory_.normed_gradient.data(), memory_.both_gradient.data()};
      default:
        return {kept.active.data(), memory_.sum.data(), memory_.active_gradient.data(), memory_.gradient.data()};
    }
  }

  Call product(const Op& op) {
    const Weight& weight = weights_.at(op.role, op.layer);
    const Linear at = linear(op);
    const int in = static_cast<int>(weight.rows), out = static_cast<int>(weight.columns), t = static_cast<int>(t_);
    if (op.pass == Pass::forward)
      return {.a = at.input,
              .b = weights_.weights(weight),
              .c = at.output,
              .m = t,
              .n = out,
              .k = in,
              .lda = in,
              .ldb = out,
              .ldc = out};
    if (op.pass == Pass::input)
      return {.a = at.output_gradient,
              .b = weights_.weights(weight),
              .c = at.input_gradient,
              .m = t,
              .n = in,
              .k = out,
              .lda = out,
              .ldb = out,
              .ldc = in,
              .b_turned = true};
    return {.a = at.input,
            .b = at.output_gradient,
            .c = weights_.gradients(weight),
            .m = in,
            .n = out,
            .k = t,
            .lda = in,
            .ldb = out,
            .ldc = out,
            .a_turned = true,
            .kept = op.micro_batch == 0 ? 0.0F : 1.0F};
  }

  std::span<float> output(const Op& op) {
    if (op.role == Role::gradients) return weights_.bucket_gradients(op.bucket);
    if (op.role == Role::weights || op.role == Role::adam) return weights_.bucket_weights(op.bucket);
    if (op.role == Role::boundary) return boundary(op);
    if (op.role == Role::embed)
      return op.pass == Pass::forward
                 ? std::span<float>(memory_.layer(memory_.first_layer, op.micro_batch).x)
                 : std::span(weights_.gradients(weights_.at(Role::embed, -1)), weights_.at(Role::embed, -1).size());
    if (op.role == Role::loss)
      return op.kind == OpKind::collective || op.pass == Pass::forward ? memory_.row_sums : memory_.logits;
    if (op.role == Role::head) return memory_.normed_gradient;  // the sum over tp
    if (op.role == Role::final_norm) return op.pass == Pass::forward ? memory_.final_normed : memory_.gradient;
    return layer_output(op);
  }

  std::span<float> boundary(const Op& op) {
    if (op.pass == Pass::input) return memory_.gradient;
    if (op.motion == Motion::receive) return memory_.layer(memory_.first_layer, op.micro_batch).x;
    return memory_.slots[memory_.slot(op.micro_batch)].back().x;
  }

  std::span<float> layer_output(const Op& op) {
    LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
    const bool forward = op.pass == Pass::forward;
    switch (op.role) {
      case Role::attention_norm:
        return forward ? kept.normed : memory_.gradient;
      case Role::mlp_norm:
        return forward ? kept.mlp_normed : memory_.gradient;
      case Role::attend:
        return forward ? kept.attended : memory_.qkv_gradient;
      case Role::activate:
        return forward ? kept.active : memory_.both_gradient;
      case Role::residual:
        return memory_.after(op.layer, op.micro_batch);
      case Role::gate_up:
      case Role::qkv:
        return memory_.normed_gradient;  // the sum over tp
      default:
        return memory_.sum;
    }
  }

  const ModelShape& m_;
  const ParallelPlan& plan_;
  HostWeights& weights_;
  HostMemory& memory_;
  std::int64_t t_;
};

}  // namespace

HostMemory::HostMemory(const ModelShape& m, const ParallelPlan& plan, std::int64_t pp_rank) {
  const std::size_t t = sized(plan.tokens()), h = sized(m.hidden), tp = sized(plan.tp), q = sized(m.q()) / tp,
                    kv = sized(m.kv()) / tp, f = sized(m.ffn) / tp, vocab = sized(m.vocab) / tp, seq = sized(plan.seq);
  const std::size_t layers = sized(plan.layers_per_piece());
  first_layer = pp_rank * plan.layers_per_piece();
  slots.resize(sized(std::min(plan.micro_batches, plan.pp - pp_rank)));
  for (auto& slot : slots) {
    slot.resize(layers + 1);
    for (std::size_t layer = 0; layer <= layers; ++layer) {
      LayerMemory& one = slot[layer];
      one.x.assign(t * h, 0);
      if (layer == layers) continue;
      for (auto* wide : {&one.normed, &one.middle, &one.mlp_normed}) wide->assign(t * h, 0);
      for (auto* narrow : {&one.inverse, &one.mlp_inverse}) narrow->assign(t, 0);
      one.qkv.assign(t * (q + 2 * kv), 0);
      one.probabilities.assign(t * seq * sized(m.heads) / tp, 0);
      one.attended.assign(t * q, 0);
      one.both.assign(t * 2 * f, 0);
      one.active.assign(t * f, 0);
    }
  }
  for (auto* wide : {&sum, &gradient, &normed_gradient}) wide->assign(t * h, 0);
  qkv_gradient.assign(t * (q + 2 * kv), 0);
  both_gradient.assign(t * 2 * f, 0);
  active_gradient.assign(t * f, 0);
  attended_gradient.assign(t * q, 0);
  scores_gradient.assign(kQueryBlock * seq, 0);
  tokens.assign(t, 0);
  if (pp_rank + 1 < plan.pp) return;
  final_normed.assign(t * h, 0);
  final_inverse.assign(t, 0);
  logits.assign(t * vocab, 0);
  row_sums.assign(t, 0);
}

std::vector<Call> bind_calls(const std::vector<Op>& ops, const ModelShape& model, const ParallelPlan& plan,
                             HostWeights& weights, HostMemory& memory) {
  Binder binder(model, plan, weights, memory);
  std::vector<Call> calls;
  for (const Op& op : ops) calls.push_back(binder.bind(op));
  return calls;
}

}  // namespace assay::train
