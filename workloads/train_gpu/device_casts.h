// device_casts: products of linear layers in FP8, on any device: which matrix is cast when, and where its copies are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/train/engine/host_memory.h"
#include "workloads/train/graph/step_job.h"
#include "workloads/train_gpu/device_shapes.h"
#include "workloads/train_gpu/fp8_cast.h"

namespace assay::train_gpu {

/// Weights are cast once in a step, by their first product, inputs by the forward pass, which keeps the transposed copy
/// for the backward one, and gradients of outputs by the first of their two products.
template <class Device>
class DeviceCasts {
 public:
  using Number = typename Device::Number;

  /// Takes all memory for those of `ops`. `memory` and `device` outlive this object.
  DeviceCasts(const train::RankJob& job, const std::vector<train::Op>& ops, const train::StepMemoryOf<Number>& memory,
              Device& device)
      : wanted_(job.factors == train::FactorType::fp8),
        exact_(job.data == train::DataMode::ring),
        memory_(memory),
        device_(device) {
    std::size_t input = 0, above = 0;
    for (const train::Op& op : ops) {
      if (!takes(op) || op.pass != train::Pass::forward) continue;
      const std::size_t t = train::sized(op.m), out = train::sized(op.n), in = train::sized(op.k);
      input = std::max(input, t * in);
      above = std::max(above, t * out);
      if (Matrix& weight = weights_[weight_key(op)]; weight.scale == nullptr)
        weight = {.plain = codes(in * out), .turned = codes(in * out), .scale = scale()};
      if (Matrix& kept = inputs_[input_key(op)]; kept.scale == nullptr)
        kept = {.turned = codes(t * in), .scale = scale()};
    }
    if (inputs_.empty()) return;
    plain_ = codes(input);
    above_ = {.plain = codes(above), .turned = codes(above), .scale = scale()};
  }

  /// Whether the product of `op` has FP8 factors: in a job of that type those of linear layers. Head and attention have
  /// BF16 ones.
  [[nodiscard]] bool takes(const train::Op& op) const {
    return wanted_ && op.kind == train::OpKind::gemm && op.layer >= 0;
  }

  /// c = a b + kept c of `call`, which is that of `op`. Precondition: takes(op).
  template <class Result>
  void multiply(const train::Op& op, const train::CallOf<Number>& call, Result* c) {
    const std::size_t m = train::sized(call.m), n = train::sized(call.n), k = train::sized(call.k);
    const Matrix& weight = weights_.at(weight_key(op));
    const Matrix& input = inputs_.at(input_key(op));
    switch (op.pass) {
      case train::Pass::forward:
        if (op.micro_batch == 0) cast({.rows = k, .columns = n}, call.b, weight);
        cast({.rows = m, .columns = k}, call.a, {.plain = plain_, .turned = input.turned, .scale = input.scale});
        return product(Fp8::forward, call, {plain_, input.scale}, {weight.turned, weight.scale}, c);
      case train::Pass::input:
        cast({.rows = m, .columns = k, .wide = true}, call.a, above_);
        return product(Fp8::input, call, {above_.plain, above_.scale}, {weight.plain, weight.scale}, c);
      case train::Pass::weight:
        return product(Fp8::weight, call, {input.turned, input.scale}, {above_.turned, above_.scale}, c);
      default:
        throw std::logic_error("a linear layer has three products");
    }
  }

 private:
  /// As it is, transposed, and the scale of both.
  struct Matrix {
    std::uint8_t *plain = nullptr, *turned = nullptr;
    CastScale* scale = nullptr;
  };
  using WeightKey = std::pair<train::Role, std::int64_t>;
  using InputKey = std::tuple<train::Role, std::int64_t, std::size_t>;
  static WeightKey weight_key(const train::Op& op) { return {op.role, op.layer}; }
  [[nodiscard]] InputKey input_key(const train::Op& op) const {
    return {op.role, op.layer, memory_.slot(op.micro_batch)};
  }
  std::uint8_t* codes(std::size_t count) { return device_.template take<std::uint8_t>(count).data(); }
  CastScale* scale() { return device_.template take<CastScale>(1).data(); }

  void cast(CastShape shape, const Number* from, const Matrix& to) {
    shape.exact = exact_;
    device_.cast(shape, from, to.plain, to.turned, to.scale);
  }
  template <class Result>
  void product(Fp8 fp8, const train::CallOf<Number>& call, const Fp8Factor& a, const Fp8Factor& b, Result* c) {
    device_.product({.m = call.m,
                     .n = call.n,
                     .k = call.k,
                     .lda = call.k,
                     .ldb = call.k,
                     .ldc = call.ldc,
                     .b_turned = true,
                     .kept = call.kept,
                     .fp8 = fp8},
                    a, b, c);
  }

  bool wanted_, exact_;
  const train::StepMemoryOf<Number>& memory_;
  Device& device_;
  std::map<WeightKey, Matrix> weights_;
  std::map<InputKey, Matrix> inputs_;  ///< of each micro-batch on its way, only transposed
  std::uint8_t* plain_ = nullptr;      ///< of the input of this product
  Matrix above_;                       ///< the gradient of an output
};

}  // namespace assay::train_gpu
