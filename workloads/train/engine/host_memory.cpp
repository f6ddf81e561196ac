// host_memory: takes all memory before the first step (StepMemory, pictured in the header), and binds each operation
// once to its operands (Binder). The backward passes of a linear layer y = x w are two products: the gradient of x is
// that of y times w transposed, the gradient of w is x transposed times that of y.
#include "workloads/train/engine/host_memory.h"

#include <algorithm>
#include <optional>

namespace assay::train {
namespace {

/// Finds the memory of one operation after the other.
template <class Number>
class Binder {
 public:
  using Call = CallOf<Number>;
  Binder(const ModelShape& model, const ParallelPlan& plan, const ExpertRoutes& routes,
         const RankWeights<Number>& weights, StepMemoryOf<Number>& memory)
      : m_(model), plan_(plan), routes_(routes), weights_(weights), memory_(memory), t_(plan.tokens()) {}

  Call bind(const Op& op) {
    if (m_.is_mixture(op.layer)) {
      if (const auto call = of_experts(op)) return *call;
    }
    if (op.kind == OpKind::gemm) {
      Call call = product(op);
      if (call.gradient != nullptr)
        call.sums = {call.gradient, sized(op.m * op.n)};
      else
        call.out = {call.c, sized(op.m * op.n)};
      return call;
    }
    if (const auto sums = fp32_output(op); !sums.empty()) return {.sums = sums};
    return {.out = output(op)};
  }

 private:
  /// Input, output and their gradients of the linear layer `role`.
  struct Linear {
    Number *input, *output, *input_gradient, *output_gradient;
  };
  Linear linear(const Op& op) {
    if (op.role == Role::head)
      return {memory_.final_normed.data(), memory_.logits.data(), memory_.normed_gradient.data(),
              memory_.logits.data()};
    LayerMemoryOf<Number>& kept = memory_.layer(op.layer, op.micro_batch);
    switch (op.role) {
      case Role::qkv:
        return {kept.normed.data(), kept.qkv.data(), memory_.normed_gradient.data(), memory_.qkv_gradient.data()};
      case Role::attention_out:
        return {kept.attended.data(), memory_.sum.data(), memory_.attended_gradient.data(), memory_.gradient.data()};
      case Role::gate_up:
        return {kept.mlp_normed.data(), kept.both.data(), memory_.normed_gradient.data(), memory_.both_gradient.data()};
      case Role::router:
        return {kept.mlp_normed.data(), columns_of(kept.experts.logits).data(), memory_.normed_gradient.data(),
                columns_of(memory_.scratch.logit_gradients).data()};
      case Role::shared_gate_up:
        return {kept.mlp_normed.data(), kept.experts.shared_both.data(), memory_.normed_gradient.data(),
                memory_.scratch.shared_both_gradient.data()};
      case Role::shared_down:
        return {kept.experts.shared_active.data(), memory_.sum.data(), memory_.scratch.shared_active_gradient.data(),
                memory_.gradient.data()};
      default:
        return {kept.active.data(), memory_.sum.data(), memory_.active_gradient.data(), memory_.gradient.data()};
    }
  }

  /// This rank's columns of a router's numbers.
  std::span<Number> columns_of(std::span<Number> all) const {
    const std::size_t count = all.size() / sized(plan_.tp);
    return {all.data() + weights_.tp() * count, count};
  }

  /// Operations bound differently than in a layer without experts.
  std::optional<Call> of_experts(const Op& op) {
    ExpertMemoryOf<Number>& kept = memory_.layer(op.layer, op.micro_batch).experts;
    ExpertScratchOf<Number>& scratch = memory_.scratch;
    const ExpertRoute* const route = op.micro_batch < 0 ? nullptr : &routes_.at(op.layer, op.micro_batch);
    const bool forward = op.pass == Pass::forward;
    const std::size_t h = sized(m_.hidden), f = sized(m_.moe->ffn / plan_.tp);
    const auto rows = [&](std::span<Number> of, std::size_t width) { return of.first(route->rows() * width); };
    const auto work = [](std::span<Number> out) { return Call{.out = out, .of_experts = true}; };
    switch (op.role) {
      case Role::router:
        if (op.kind != OpKind::collective) return std::nullopt;
        return Call{.out = forward ? kept.logits : scratch.logit_gradients};
      case Role::dispatch:
        return forward ? Call{.out = rows(scratch.arrived, h), .sent = scratch.copies}
                       : Call{.out = scratch.copies_back, .sent = rows(scratch.leaving, h)};
      case Role::combine:
        return forward ? Call{.out = kept.returned, .sent = rows(scratch.leaving, h)}
                       : Call{.out = rows(scratch.arrived, h), .sent = scratch.copies};
      case Role::activate:
        return work(forward ? rows(kept.active, f) : rows(scratch.both_gradient, 2 * f));
      case Role::shared_activate:
        return Call{.out = forward ? kept.shared_active : scratch.shared_both_gradient};
      case Role::gate_up:
        if (op.kind == OpKind::collective) return std::nullopt;
        if (op.pass == Pass::weight) return Call{.sums = expert_gradients(op), .of_experts = true};
        return work(forward ? rows(kept.both, 2 * f) : rows(scratch.input_gradients, h));
      case Role::down:
        if (op.kind == OpKind::collective) return std::nullopt;
        if (op.pass == Pass::weight) return Call{.sums = expert_gradients(op), .of_experts = true};
        return work(forward ? rows(scratch.outputs, h) : rows(scratch.active_gradient, f));
      default:
        return std::nullopt;
    }
  }
  std::span<float> expert_gradients(const Op& op) {
    const Weight& first = weights_.at(op.role, op.layer);
    return {weights_.gradients(first), first.size() * sized(m_.moe->experts / plan_.ep)};
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
              .ldc = out,
              .kept = op.role == Role::shared_down && plan_.ep == 1 ? 1.0F : 0.0F};  // routed experts came before
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
              .b_turned = true,
              .kept = op.role == Role::router ? 1.0F : 0.0F};  // experts came before
    return {.a = at.input,
            .b = at.output_gradient,
            .gradient = weights_.gradients(weight),
            .m = in,
            .n = out,
            .k = t,
            .lda = in,
            .ldb = out,
            .ldc = out,
            .a_turned = true,
            .kept = op.micro_batch == 0 ? 0.0F : 1.0F};
  }

  /// The result of `op` if it is fp32 in any case; else empty.
  std::span<float> fp32_output(const Op& op) {
    if (op.role == Role::gradients) return weights_.bucket_gradients(op.bucket);
    if (op.role == Role::embed && op.pass != Pass::forward)
      return {weights_.gradients(weights_.at(Role::embed, -1)), weights_.at(Role::embed, -1).size()};
    if (op.role == Role::loss && (op.kind == OpKind::collective || op.pass == Pass::forward)) return memory_.row_sums;
    return {};
  }

  std::span<Number> output(const Op& op) {
    if (op.role == Role::weights || op.role == Role::adam) return weights_.bucket_weights(op.bucket);
    if (op.role == Role::boundary) return boundary(op);
    if (op.role == Role::embed) return memory_.layer(0, op.micro_batch).x;
    if (op.role == Role::loss) return memory_.logits;
    if (op.role == Role::head) return memory_.normed_gradient;  // the sum over tp
    if (op.role == Role::final_norm) return op.pass == Pass::forward ? memory_.final_normed : memory_.gradient;
    return layer_output(op);
  }

  std::span<Number> boundary(const Op& op) {
    if (op.pass == Pass::input) return memory_.gradient;
    if (op.motion == Motion::receive) return memory_.layer(op.layer, op.micro_batch).x;
    return memory_.after(op.layer, op.micro_batch);
  }

  std::span<Number> layer_output(const Op& op) {
    LayerMemoryOf<Number>& kept = memory_.layer(op.layer, op.micro_batch);
    const bool forward = op.pass == Pass::forward;
    switch (op.role) {
      case Role::attention_norm:
        return forward ? kept.normed : memory_.gradient;
      case Role::mlp_norm:
        return forward ? kept.mlp_normed : memory_.gradient;
      case Role::attend:
        if (op.motion == Motion::exchange) return memory_.keys;
        if (op.motion == Motion::exchange_sums) return memory_.keys_gradient;
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
  const ExpertRoutes& routes_;
  const RankWeights<Number>& weights_;
  StepMemoryOf<Number>& memory_;
  std::int64_t t_;
};

/// Micro-batches of a piece whose activations are kept at one time: the backward pass of the first of them ends before
/// the forward pass of the one that takes its place.
std::size_t in_flight(const ParallelPlan& plan, std::int64_t pp_rank) {
  std::vector<std::int64_t> begun(sized(plan.virtual_stages), 0), done(sized(plan.virtual_stages), 0);
  std::int64_t most = 1;
  for (const Turn& turn : pipeline_turns(plan, pp_rank)) {
    const std::size_t piece = sized(turn.piece);
    if (turn.forward)
      most = std::max(most, ++begun[piece] - done[piece]);
    else
      ++done[piece];
  }
  return sized(most);
}

}  // namespace

template <class Number>
StepMemoryOf<Number>::StepMemoryOf(const ModelShape& m, const ParallelPlan& plan, const RankPosition& at,
                                   const ExpertRoutes& routes, const Take& take)
    : layers_per_piece(plan.layers_per_piece()), pipeline(plan.pp) {
  const std::size_t t = sized(plan.tokens()), h = sized(m.hidden), tp = sized(plan.tp), q = sized(m.q()) / tp,
                    kv = sized(m.kv()) / tp, vocab = sized(m.vocab) / tp, seq = sized(plan.seq);
  std::size_t rows = 0;
  slots.resize(in_flight(plan, at.pp));
  for (auto& slot : slots) {
    slot.resize(sized(plan.virtual_stages * (layers_per_piece + 1)));
    for (Layer& one : slot) one.x = take.numbers(t * h);
    for (std::int64_t piece = 0; piece < plan.virtual_stages; ++piece) {
      for (std::int64_t i = 0; i < layers_per_piece; ++i) {
        const std::int64_t layer = (piece * plan.pp + at.pp) * layers_per_piece + i;
        take_layer(slot[place(layer)], m, plan, layer, routes, take);
        if (m.is_mixture(layer)) rows = std::max(rows, routes.most_rows(layer));
      }
    }
  }
  for (auto* wide : {&sum, &gradient, &normed_gradient}) *wide = take.numbers(t * h);
  qkv_gradient = take.numbers(t * (q + 2 * kv));
  attended_gradient = take.numbers(t * q);
  scores_gradient = take.numbers(kQueryBlock * seq);
  if (m.mixtures() < m.layers) {
    both_gradient = take.numbers(t * 2 * sized(m.ffn) / tp);
    active_gradient = take.numbers(t * sized(m.ffn) / tp);
  }
  if (plan.cp > 1) {
    for (auto* all : {&keys, &keys_gradient}) *all = take.numbers(sized(plan.cp) * t * 2 * kv);
  }
  if (rows > 0) take_scratch(m, plan, rows, take);
  if (at.pp + 1 < plan.pp) return;
  final_normed = take.numbers(t * h);
  final_inverse = take.sums(t);
  logits = take.numbers(t * vocab);
  row_sums = take.sums(t);
}

template <class Number>
void StepMemoryOf<Number>::take_layer(Layer& one, const ModelShape& m, const ParallelPlan& plan, std::int64_t layer,
                                      const ExpertRoutes& routes, const Take& take) const {
  const std::size_t t = sized(plan.tokens()), h = sized(m.hidden), tp = sized(plan.tp), q = sized(m.q()) / tp,
                    kv = sized(m.kv()) / tp, f = sized(m.ffn) / tp;
  for (auto* wide : {&one.normed, &one.middle, &one.mlp_normed}) *wide = take.numbers(t * h);
  for (auto* sums : {&one.inverse, &one.mlp_inverse}) *sums = take.sums(t);
  one.qkv = take.numbers(t * (q + 2 * kv));
  const std::size_t queries = t * sized(m.heads) / tp;  // of all heads
  one.probabilities = take.numbers(take.fused ? 0 : queries * sized(plan.seq));
  one.statistics = take.sums(take.fused ? queries : 0);
  one.attended = take.numbers(t * q);
  if (m.is_mixture(layer)) return take_experts(one.experts, m, plan, routes.most_rows(layer), take);
  one.both = take.numbers(t * 2 * f);
  one.active = take.numbers(t * f);
}

template <class Number>
void StepMemoryOf<Number>::take_experts(ExpertMemoryOf<Number>& one, const ModelShape& m, const ParallelPlan& plan,
                                        std::size_t rows, const Take& take) const {
  const std::size_t t = sized(plan.tokens()), h = sized(m.hidden), f = sized(m.moe->ffn / plan.tp),
                    copies = t * sized(m.moe->top_k), shared = sized(m.moe->shared) * f;
  one.logits = take.numbers(t * sized(m.moe->experts));
  one.gates = take.sums(copies);
  one.inputs = take.numbers(rows * h);
  one.both = take.numbers(rows * 2 * f);
  one.active = take.numbers(rows * f);
  one.returned = take.numbers(copies * h);
  one.shared_both = take.numbers(t * 2 * shared);
  one.shared_active = take.numbers(t * shared);
}

template <class Number>
void StepMemoryOf<Number>::take_scratch(const ModelShape& m, const ParallelPlan& plan, std::size_t rows,
                                        const Take& take) {
  const std::size_t t = sized(plan.tokens()), h = sized(m.hidden), f = sized(m.moe->ffn / plan.tp),
                    copies = t * sized(m.moe->top_k), shared = sized(m.moe->shared) * f;
  for (auto* one : {&scratch.copies, &scratch.copies_back}) *one = take.numbers(copies * h);
  for (auto* one :
       {&scratch.arrived, &scratch.leaving, &scratch.outputs, &scratch.output_gradients, &scratch.input_gradients})
    *one = take.numbers(rows * h);
  scratch.both_gradient = take.numbers(rows * 2 * f);
  scratch.active_gradient = take.numbers(rows * f);
  scratch.shared_both_gradient = take.numbers(t * 2 * shared);
  scratch.shared_active_gradient = take.numbers(t * shared);
  scratch.logit_gradients = take.numbers(t * sized(m.moe->experts));
  scratch.token_sums = take.sums(t);
  scratch.copy_sums = take.sums(copies);
}

template <class Number>
std::vector<CallOf<Number>> bind_calls(const std::vector<Op>& ops, const ModelShape& model, const ParallelPlan& plan,
                                       const ExpertRoutes& routes, const RankWeights<Number>& weights,
                                       StepMemoryOf<Number>& memory) {
  Binder binder(model, plan, routes, weights, memory);
  std::vector<CallOf<Number>> calls;
  for (const Op& op : ops) calls.push_back(binder.bind(op));
  return calls;
}

template struct StepMemoryOf<float>;
template struct StepMemoryOf<Bf16>;
template std::vector<CallOf<float>> bind_calls(const std::vector<Op>&, const ModelShape&, const ParallelPlan&,
                                               const ExpertRoutes&, const RankWeights<float>&, StepMemoryOf<float>&);
template std::vector<CallOf<Bf16>> bind_calls(const std::vector<Op>&, const ModelShape&, const ParallelPlan&,
                                              const ExpertRoutes&, const RankWeights<Bf16>&, StepMemoryOf<Bf16>&);

}  // namespace assay::train
