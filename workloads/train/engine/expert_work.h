// expert_work: the routed experts of one rank: copies of tokens packed, sorted, multiplied and added up again.
#pragma once

#include "workloads/train/engine/host_memory.h"

namespace assay::train {

/// The additional operations of a layer with experts. With ep of 1 nothing is sent, and the products take their rows
/// from the tokens themselves.
class ExpertWork {
 public:
  /// All of them outlive this object.
  ExpertWork(const ModelShape& model, const ParallelPlan& plan, const ExpertRoutes& routes, HostWeights& weights,
             StepMemory& memory, bool exact);

  /// A product or activation of the routed experts, for `op`, whose Call says `of_experts`.
  void compute(const Op& op);
  /// Before the products of the router's gradients: the gradients of its numbers, if no collective has summed them.
  void before_router(const Op& op);
  /// Before and after a collective of a layer with experts.
  void lend(const Op& op);
  void take(const Op& op);

 private:
  struct At;  // operands of an operation
  [[nodiscard]] At at(const Op& op);
  void forward_products(const At& at, const Op& op);
  void backward_products(const At& at, const Op& op);
  void multiply_experts(const At& at, const Op& op, const float* rows, float* results);
  void add_weight_gradients(const At& at, const Op& op, const float* rows, const float* gradients);
  void pack(const At& at, std::span<const float> tokens, bool weighted, std::span<float> copies) const;
  void weigh(const At& at);
  void add_up(const At& at, bool onto);
  void add_input_gradients(const At& at, std::span<const float> copies, bool onto);
  void logit_gradients(const At& at);

  const ModelShape& m_;
  const ParallelPlan& plan_;
  const ExpertRoutes& routes_;
  HostWeights& weights_;
  StepMemory& memory_;
  bool exact_;
  std::size_t h_ = 0, k_ = 0, f_ = 0;  ///< hidden, experts of a token, width of one expert on this rank
};

}  // namespace assay::train
