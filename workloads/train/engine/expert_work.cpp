// expert_work: packs, sorts and adds copies of tokens in loops, and calls one product for each expert.
#include "workloads/train/engine/expert_work.h"

#include <algorithm>
#include <cmath>

#include "workloads/train/engine/step_math.h"

namespace assay::train {

struct ExpertWork::At {
  const ExpertRoute& route;
  LayerMemory& layer;
  ExpertMemory& kept;
};

namespace {

/// Rows of `from` in the order of `places` become rows of `to`, or the other way round.
void scatter_rows(std::span<const std::size_t> places, std::size_t width, const float* from, float* to) {
  for (std::size_t i = 0; i < places.size(); ++i, from += width) std::copy_n(from, width, to + places[i] * width);
}
void gather_rows(std::span<const std::size_t> places, std::size_t width, const float* from, float* to) {
  for (std::size_t i = 0; i < places.size(); ++i, to += width) std::copy_n(from + places[i] * width, width, to);
}

}  // namespace

ExpertWork::ExpertWork(const ModelShape& model, const ParallelPlan& plan, const ExpertRoutes& routes,
                       HostWeights& weights, StepMemory& memory, bool exact)
    : m_(model), plan_(plan), routes_(routes), weights_(weights), memory_(memory), exact_(exact) {
  if (!model.moe) return;
  h_ = sized(model.hidden);
  k_ = sized(model.moe->top_k);
  f_ = sized(model.moe->ffn / plan.tp);
}

ExpertWork::At ExpertWork::at(const Op& op) {
  LayerMemory& layer = memory_.layer(op.layer, op.micro_batch);
  return {.route = routes_.at(op.layer, op.micro_batch), .layer = layer, .kept = layer.experts};
}

void ExpertWork::compute(const Op& op) {
  const At here = at(op);
  if (op.role == Role::activate) {
    ExpertScratch& scratch = memory_.scratch;
    const std::size_t rows = here.route.rows();
    if (op.pass == Pass::forward) return activate(rows, f_, here.kept.both.data(), here.kept.active.data(), exact_);
    return activate_back(rows, f_, here.kept.both.data(), scratch.active_gradient.data(), scratch.both_gradient.data(),
                         exact_);
  }
  op.pass == Pass::forward ? forward_products(here, op) : backward_products(here, op);
}

void ExpertWork::forward_products(const At& at, const Op& op) {
  ExpertScratch& scratch = memory_.scratch;
  if (op.role == Role::gate_up) {
    if (plan_.ep == 1) pack(at, at.layer.mlp_normed, false, at.kept.inputs);
    return multiply_experts(at, op, at.kept.inputs.data(), at.kept.both.data());
  }
  multiply_experts(at, op, at.kept.active.data(), scratch.outputs.data());
  if (plan_.ep > 1) return;
  std::ranges::copy(scratch.outputs, at.kept.returned.begin());
  weigh(at);
  add_up(at, false);
}

void ExpertWork::backward_products(const At& at, const Op& op) {
  ExpertScratch& scratch = memory_.scratch;
  const bool of_input = op.pass == Pass::input;
  if (op.role == Role::down) {
    if (of_input && plan_.ep == 1) pack(at, memory_.gradient, true, scratch.output_gradients);
    return of_input ? multiply_experts(at, op, scratch.output_gradients.data(), scratch.active_gradient.data())
                    : add_weight_gradients(at, op, at.kept.active.data(), scratch.output_gradients.data());
  }
  if (!of_input) return add_weight_gradients(at, op, at.kept.inputs.data(), scratch.both_gradient.data());
  multiply_experts(at, op, scratch.both_gradient.data(), scratch.input_gradients.data());
  if (plan_.ep == 1) add_input_gradients(at, scratch.input_gradients, m_.moe->shared > 0);
}

/// Rows of each expert times its weights, or times the transposed ones for the gradient of an input.
void ExpertWork::multiply_experts(const At& at, const Op& op, const float* rows, float* results) {
  const bool turned = op.pass == Pass::input;
  for (std::size_t i = 0; i + 1 < at.route.begins.size(); ++i) {
    const Weight& weight = weights_.at(op.role, op.layer, i);
    const std::size_t begin = at.route.begins[i], count = at.route.begins[i + 1] - begin;
    const std::size_t in = turned ? weight.columns : weight.rows, out = turned ? weight.rows : weight.columns;
    if (count == 0) continue;
    float* const c = results + begin * out;
    multiply({.a = rows + begin * in,
              .b = weights_.weights(weight),
              .c = c,
              .m = static_cast<int>(count),
              .n = static_cast<int>(out),
              .k = static_cast<int>(in),
              .lda = static_cast<int>(in),
              .ldb = static_cast<int>(weight.columns),
              .ldc = static_cast<int>(out),
              .b_turned = turned});
    if (exact_) fold({c, count * out});
  }
}

void ExpertWork::add_weight_gradients(const At& at, const Op& op, const float* rows, const float* gradients) {
  for (std::size_t i = 0; i + 1 < at.route.begins.size(); ++i) {
    const Weight& weight = weights_.at(op.role, op.layer, i);
    const std::size_t begin = at.route.begins[i], count = at.route.begins[i + 1] - begin;
    float* const c = weights_.gradients(weight);
    if (count == 0) {
      if (op.micro_batch == 0) std::fill_n(c, weight.size(), 0.0F);
      continue;
    }
    multiply({.a = rows + begin * weight.rows,
              .b = gradients + begin * weight.columns,
              .c = c,
              .m = static_cast<int>(weight.rows),
              .n = static_cast<int>(weight.columns),
              .k = static_cast<int>(count),
              .lda = static_cast<int>(weight.rows),
              .ldb = static_cast<int>(weight.columns),
              .ldc = static_cast<int>(weight.columns),
              .a_turned = true,
              .kept = op.micro_batch == 0 ? 0.0F : 1.0F});
    if (exact_) fold({c, weight.size()});
  }
}

/// Rows of tokens become rows of their copies, times their gates where `weighted`.
void ExpertWork::pack(const At& at, std::span<const float> tokens, bool weighted, std::span<float> copies) const {
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) {
    const float* const from = tokens.data() + at.route.copies[i] / k_ * h_;
    float* const to = copies.data() + i * h_;
    if (!weighted) {
      std::copy_n(from, h_, to);
      continue;
    }
    const float gate = at.kept.gates[i];
    for (std::size_t column = 0; column < h_; ++column) to[column] = gate * from[column];
  }
  if (weighted && exact_) fold(copies.first(at.route.copies.size() * h_));
}

/// The gates of all copies: softmax over the chosen experts of a token; exact: the router's numbers themselves.
void ExpertWork::weigh(const At& at) {
  const std::size_t tokens = sized(plan_.tokens()), share = sized(m_.moe->experts / plan_.tp);
  const std::span<float> sums = memory_.scratch.token_sums;
  std::ranges::fill(sums, 0.0F);
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) {
    const std::size_t token = at.route.copies[i] / k_, expert = at.route.experts[i];
    const float number = at.kept.logits[(expert / share * tokens + token) * share + expert % share];
    at.kept.gates[i] = exact_ ? number : std::exp(number);
    sums[token] += at.kept.gates[i];
  }
  if (exact_) return;
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) at.kept.gates[i] /= sums[at.route.copies[i] / k_];
}

/// Results of experts, times their gates, become the sum of each token, or are added to it.
void ExpertWork::add_up(const At& at, bool onto) {
  if (!onto) std::ranges::fill(memory_.sum, 0.0F);
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) {
    const float* const from = at.kept.returned.data() + i * h_;
    float* const to = memory_.sum.data() + at.route.copies[i] / k_ * h_;
    const float gate = at.kept.gates[i];
    for (std::size_t column = 0; column < h_; ++column) to[column] += gate * from[column];
  }
  if (exact_) fold(memory_.sum);
}

void ExpertWork::add_input_gradients(const At& at, std::span<const float> copies, bool onto) {
  if (!onto) std::ranges::fill(memory_.normed_gradient, 0.0F);
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) {
    float* const to = memory_.normed_gradient.data() + at.route.copies[i] / k_ * h_;
    add(h_, to, copies.data() + i * h_, to, false);
  }
  if (exact_) fold(memory_.normed_gradient);
}

/// This rank's part of the gradients of the router's numbers: its part of the experts' results.
void ExpertWork::logit_gradients(const At& at) {
  const std::size_t tokens = sized(plan_.tokens()), share = sized(m_.moe->experts / plan_.tp);
  const std::span<float> all = memory_.scratch.logit_gradients;
  const std::span<float> along = memory_.scratch.copy_sums, sums = memory_.scratch.token_sums;
  std::ranges::fill(all, 0.0F);
  std::ranges::fill(sums, 0.0F);
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) {
    const std::size_t token = at.route.copies[i] / k_;
    const float *returned = at.kept.returned.data() + i * h_, *above = memory_.gradient.data() + token * h_;
    float sum = 0;
    for (std::size_t column = 0; column < h_; ++column) sum += returned[column] * above[column];
    along[i] = sum;
    sums[token] += at.kept.gates[i] * sum;
  }
  for (std::size_t i = 0; i < at.route.copies.size(); ++i) {
    const std::size_t token = at.route.copies[i] / k_, expert = at.route.experts[i];
    all[(expert / share * tokens + token) * share + expert % share] =
        exact_ ? along[i] : at.kept.gates[i] * (along[i] - sums[token]);
  }
  if (exact_) fold(all);
}

void ExpertWork::before_router(const Op& op) {
  if (plan_.tp == 1 && op.pass == Pass::input) logit_gradients(at(op));
}

void ExpertWork::lend(const Op& op) {
  ExpertScratch& scratch = memory_.scratch;
  const At here = at(op);
  const bool forward = op.pass == Pass::forward;
  if (op.role == Role::router) return forward ? void() : logit_gradients(here);
  if (op.role == Role::dispatch)
    return forward ? pack(here, here.layer.mlp_normed, false, scratch.copies)
                   : gather_rows(here.route.places, h_, scratch.input_gradients.data(), scratch.leaving.data());
  if (op.role == Role::combine)
    return forward ? gather_rows(here.route.places, h_, scratch.outputs.data(), scratch.leaving.data())
                   : pack(here, memory_.gradient, true, scratch.copies);
}

void ExpertWork::take(const Op& op) {
  ExpertScratch& scratch = memory_.scratch;
  const At here = at(op);
  const bool forward = op.pass == Pass::forward;
  if (op.role == Role::router && !forward && exact_) return fold(scratch.logit_gradients);
  if (op.role == Role::dispatch)
    return forward ? scatter_rows(here.route.places, h_, scratch.arrived.data(), here.kept.inputs.data())
                   : add_input_gradients(here, scratch.copies_back, m_.moe->shared > 0);
  if (op.role != Role::combine) return;
  if (!forward) return scatter_rows(here.route.places, h_, scratch.arrived.data(), scratch.output_gradients.data());
  weigh(here);
  add_up(here, m_.moe->shared > 0);
}

}  // namespace assay::train
