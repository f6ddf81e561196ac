// device_experts: the routed experts of one rank on any device: copies of tokens packed, sorted, multiplied and added
// up.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/train/engine/host_memory.h"
#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu {

/// ExpertWork of the engine on hosts, asked of a device. Which copy goes where is known before the first step, so that
/// its tables are on the device then.
template <class Device>
class DeviceExperts {
 public:
  using Number = typename Device::Number;
  using Scratch = train::ExpertScratchOf<Number>;

  /// All of them outlive this object. Takes memory for the tables of every layer with experts of `ops`.
  DeviceExperts(const train::ModelShape& model, const train::ParallelPlan& plan, const std::vector<train::Op>& ops,
                const train::ExpertRoutes& routes, const train::RankWeights<Number>& weights,
                train::StepMemoryOf<Number>& memory, bool exact, Device& device)
      : m_(model), plan_(plan), routes_(routes), weights_(weights), memory_(memory), exact_(exact), device_(device) {
    if (!model.moe) return;
    h_ = train::sized(model.hidden);
    k_ = train::sized(model.moe->top_k);
    f_ = train::sized(model.moe->ffn / plan.tp);
    tokens_ = train::sized(plan.tokens());
    tables_.resize(train::sized(model.layers));
    for (const train::Op& op : ops) {
      if (op.role != train::Role::activate || op.pass != train::Pass::forward || !model.is_mixture(op.layer)) continue;
      auto& tables = tables_[train::sized(op.layer)];
      tables.resize(train::sized(plan.micro_batches));
      tables[train::sized(op.micro_batch)] = tables_of(routes.at(op.layer, op.micro_batch));
    }
  }

  /// As ExpertWork has them.
  void compute(const train::Op& op) {
    const At here = at(op);
    if (op.role == train::Role::activate) {
      Scratch& scratch = memory_.scratch;
      const std::size_t rows = here.route.rows();
      if (op.pass == train::Pass::forward)
        return device_.activate(rows, f_, here.kept.both.data(), here.kept.active.data(), exact_);
      return device_.activate_back(rows, f_, here.kept.both.data(), scratch.active_gradient.data(),
                                   scratch.both_gradient.data(), exact_);
    }
    op.pass == train::Pass::forward ? forward_products(here, op) : backward_products(here, op);
  }

  void before_router(const train::Op& op) {
    if (plan_.tp == 1 && op.pass == train::Pass::input) logit_gradients(at(op));
  }

  void lend(const train::Op& op) {
    Scratch& scratch = memory_.scratch;
    const At here = at(op);
    const bool forward = op.pass == train::Pass::forward;
    if (op.role == train::Role::router) return forward ? void() : logit_gradients(here);
    if (op.role == train::Role::dispatch)
      return forward ? pack(here, here.layer.mlp_normed, false, scratch.copies)
                     : gather(here, here.table.places, scratch.input_gradients, scratch.leaving);
    return forward ? gather(here, here.table.places, scratch.outputs, scratch.leaving)
                   : pack(here, memory_.gradient, true, scratch.copies);
  }

  void take(const train::Op& op) {
    Scratch& scratch = memory_.scratch;
    const At here = at(op);
    const bool forward = op.pass == train::Pass::forward;
    if (op.role == train::Role::router) {
      if (!forward && exact_) fold(scratch.logit_gradients);
      return;
    }
    if (op.role == train::Role::dispatch)
      return forward ? gather(here, here.table.back, scratch.arrived, here.kept.inputs)
                     : add_input_gradients(here, scratch.copies_back, m_.moe->shared > 0);
    if (!forward) return gather(here, here.table.back, scratch.arrived, scratch.output_gradients);
    weigh(here);
    add_up(here, m_.moe->shared > 0);
  }

 private:
  /// Of one micro-batch through one layer, on the device.
  struct Table {
    const std::int32_t* tokens = nullptr;  ///< of each copy that is sent
    const std::int32_t* logits = nullptr;  ///< of each copy: its place among the router's numbers
    const std::int32_t* copies = nullptr;  ///< of each token its copies, in the order in which they are sent
    const std::int32_t* places = nullptr;  ///< of each copy that came: its row among those sorted by expert
    const std::int32_t* back = nullptr;    ///< of each of those rows: the copy
  };
  struct At {
    const train::ExpertRoute& route;
    const Table& table;
    train::LayerMemoryOf<Number>& layer;
    train::ExpertMemoryOf<Number>& kept;
  };

  [[nodiscard]] Table tables_of(const train::ExpertRoute& route) {
    const std::size_t share = train::sized(m_.moe->experts / plan_.tp);
    std::vector<std::int32_t> tokens, logits, copies(tokens_ * k_), places, back(route.places.size());
    std::vector<std::size_t> found(tokens_, 0);
    const auto number = [](std::size_t value) { return static_cast<std::int32_t>(value); };
    for (std::size_t i = 0; i < route.copies.size(); ++i) {
      const std::size_t token = route.copies[i] / k_, expert = route.experts[i];
      tokens.push_back(number(token));
      logits.push_back(number((expert / share * tokens_ + token) * share + expert % share));
      copies[token * k_ + found[token]++] = number(i);
    }
    for (std::size_t i = 0; i < route.places.size(); ++i) {
      places.push_back(number(route.places[i]));
      back[route.places[i]] = number(i);
    }
    return {.tokens = table(tokens),
            .logits = table(logits),
            .copies = table(copies),
            .places = table(places),
            .back = table(back)};
  }
  const std::int32_t* table(const std::vector<std::int32_t>& numbers) {
    const auto room = device_.template take<std::int32_t>(numbers.size());
    if (!numbers.empty()) device_.copy_in(room.data(), numbers);
    return room.data();
  }

  [[nodiscard]] At at(const train::Op& op) {
    train::LayerMemoryOf<Number>& layer = memory_.layer(op.layer, op.micro_batch);
    return {.route = routes_.at(op.layer, op.micro_batch),
            .table = tables_[train::sized(op.layer)][train::sized(op.micro_batch)],
            .layer = layer,
            .kept = layer.experts};
  }

  void fold(std::span<Number> values) { device_.fold(values.data(), values.size()); }

  void forward_products(const At& at, const train::Op& op) {
    if (op.role == train::Role::gate_up) {
      if (plan_.ep == 1) pack(at, at.layer.mlp_normed, false, at.kept.inputs);
      return multiply_experts(at, op, at.kept.inputs.data(), at.kept.both.data());
    }
    // Undivided, rows sorted by expert are in the order in which they would be sent.
    Number* const results = plan_.ep == 1 ? at.kept.returned.data() : memory_.scratch.outputs.data();
    multiply_experts(at, op, at.kept.active.data(), results);
    if (plan_.ep > 1) return;
    weigh(at);
    add_up(at, false);
  }

  void backward_products(const At& at, const train::Op& op) {
    Scratch& scratch = memory_.scratch;
    const bool of_input = op.pass == train::Pass::input;
    if (op.role == train::Role::down) {
      if (of_input && plan_.ep == 1) pack(at, memory_.gradient, true, scratch.output_gradients);
      return of_input ? multiply_experts(at, op, scratch.output_gradients.data(), scratch.active_gradient.data())
                      : add_weight_gradients(at, op, at.kept.active.data(), scratch.output_gradients.data());
    }
    if (!of_input) return add_weight_gradients(at, op, at.kept.inputs.data(), scratch.both_gradient.data());
    multiply_experts(at, op, scratch.both_gradient.data(), scratch.input_gradients.data());
    if (plan_.ep == 1) add_input_gradients(at, scratch.input_gradients, m_.moe->shared > 0);
  }

  /// Rows of each expert times its weights, or times the transposed ones for the gradient of an input.
  void multiply_experts(const At& at, const train::Op& op, const Number* rows, Number* results) {
    const bool turned = op.pass == train::Pass::input;
    for (std::size_t i = 0; i + 1 < at.route.begins.size(); ++i) {
      const train::Weight& weight = weights_.at(op.role, op.layer, i);
      const std::size_t begin = at.route.begins[i], count = at.route.begins[i + 1] - begin;
      const std::size_t in = turned ? weight.columns : weight.rows, out = turned ? weight.rows : weight.columns;
      if (count == 0) continue;
      Number* const c = results + begin * out;
      device_.product({.m = whole(count),
                       .n = whole(out),
                       .k = whole(in),
                       .lda = whole(in),
                       .ldb = whole(weight.columns),
                       .ldc = whole(out),
                       .b_turned = turned},
                      rows + begin * in, weights_.weights(weight), c);
      if (exact_) device_.fold(c, count * out);
    }
  }

  void add_weight_gradients(const At& at, const train::Op& op, const Number* rows, const Number* gradients) {
    for (std::size_t i = 0; i + 1 < at.route.begins.size(); ++i) {
      const train::Weight& weight = weights_.at(op.role, op.layer, i);
      const std::size_t begin = at.route.begins[i], count = at.route.begins[i + 1] - begin;
      float* const c = weights_.gradients(weight);
      if (count == 0) {
        if (op.micro_batch == 0) device_.clear(c, weight.size());
        continue;
      }
      device_.product({.m = whole(weight.rows),
                       .n = whole(weight.columns),
                       .k = whole(count),
                       .lda = whole(weight.rows),
                       .ldb = whole(weight.columns),
                       .ldc = whole(weight.columns),
                       .a_turned = true,
                       .kept = op.micro_batch == 0 ? 0.0F : 1.0F},
                      rows + begin * weight.rows, gradients + begin * weight.columns, c);
      if (exact_) device_.fold(c, weight.size());
    }
  }

  /// Rows of tokens become rows of their copies, times their gates where `weighted`.
  void pack(const At& at, std::span<const Number> tokens, bool weighted, std::span<Number> copies) {
    const std::size_t count = at.route.copies.size();
    device_.gather_rows({.rows = count, .width = h_}, at.table.tokens, weighted ? at.kept.gates.data() : nullptr,
                        tokens.data(), copies.data());
    if (weighted && exact_) device_.fold(copies.data(), count * h_);
  }

  /// Copies that came become rows sorted by expert, or the other way round.
  void gather(const At& at, const std::int32_t* places, std::span<const Number> from, std::span<Number> to) {
    device_.gather_rows({.rows = at.route.rows(), .width = h_}, places, nullptr, from.data(), to.data());
  }

  /// The gates of all copies: softmax over the chosen experts of a token; exact: the router's numbers themselves.
  void weigh(const At& at) {
    device_.gates(tokens_, k_, at.table.copies, at.table.logits, at.kept.logits.data(), at.kept.gates.data(), exact_);
  }

  /// The experts' results, times their gates, become the sum of each token, or are added to it.
  void add_up(const At& at, bool onto) {
    device_.sum_rows({.rows = tokens_, .width = h_, .each = k_, .onto = onto}, at.table.copies, at.kept.gates.data(),
                     at.kept.returned.data(), memory_.sum.data());
    if (exact_) fold(memory_.sum);
  }

  void add_input_gradients(const At& at, std::span<const Number> copies, bool onto) {
    device_.sum_rows({.rows = tokens_, .width = h_, .each = k_, .onto = onto}, at.table.copies, nullptr, copies.data(),
                     memory_.normed_gradient.data());
    if (exact_) fold(memory_.normed_gradient);
  }

  /// This rank's part of the gradients of the router's numbers: its part of the experts' results.
  void logit_gradients(const At& at) {
    const std::span<Number> all = memory_.scratch.logit_gradients;
    device_.clear(all.data(), all.size());
    device_.gates_back({.rows = tokens_, .width = h_, .each = k_}, at.table.copies, at.table.logits,
                       {.returned = at.kept.returned.data(),
                        .above = memory_.gradient.data(),
                        .gates = at.kept.gates.data(),
                        .logits = all.data()},
                       exact_);
    if (exact_) fold(all);
  }

  static std::int64_t whole(std::size_t value) { return static_cast<std::int64_t>(value); }

  const train::ModelShape& m_;
  const train::ParallelPlan& plan_;
  const train::ExpertRoutes& routes_;
  const train::RankWeights<Number>& weights_;
  train::StepMemoryOf<Number>& memory_;
  bool exact_;
  Device& device_;
  std::size_t h_ = 0, k_ = 0, f_ = 0, tokens_ = 0;
  std::vector<std::vector<Table>> tables_;  ///< [layer][micro-batch]
};

}  // namespace assay::train_gpu
