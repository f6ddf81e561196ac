// accounting: sums over the operations of a step, and the closed forms that they must equal.
#pragma once

#include <cstdint>
#include <vector>

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

/// What `ops` of one rank add up to.
StepSums sums_of(const std::vector<Op>& ops);

/// The sums over all ranks of the plan, from one rank of each pipeline place, as all others do the same.
StepSums summed_graphs(const ModelShape& model, const ParallelPlan& plan);

/// The same by closed forms, only from the model and the plan.
StepSums closed_forms(const ModelShape& model, const ParallelPlan& plan);

/// Memory traffic of Adam for one parameter, in B: reads gradient, weight and both moments, writes weight and moments
/// (fp32), and a bf16 copy of the weight where activations are bf16.
constexpr std::int64_t adam_bytes(std::int64_t element) {
  constexpr std::int64_t kSingles = 7, kSingle = 4;
  return kSingles * kSingle + (element == 2 ? 2 : 0);
}
static_assert(adam_bytes(2) == 30 && adam_bytes(4) == 28);

/// Share of a step in which a pipeline rank waits for others, where all micro-batches take the same time and messages
/// none: (p - 1) / (v m + p - 1).
constexpr double bubble_share(const ParallelPlan& plan) {
  const double p = static_cast<double>(plan.pp);
  return (p - 1) / (static_cast<double>(plan.virtual_stages * plan.micro_batches) + p - 1);
}
static_assert(bubble_share({.micro_batches = 4, .pp = 4}) == 3.0 / 7);

}  // namespace assay::train
