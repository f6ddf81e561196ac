// parallel_plan: division of a training step among ranks, with refusal of plans that do not divide or fit.
#pragma once

#include <cstdint>

#include "probes/core/units.h"
#include "workloads/train/graph/model_card.h"
#include "workloads/train/graph/token_place.h"

namespace assay::train {

/// The ways to divide a step. tp splits each matrix, cp the sequence, ep the experts, pp the layers, dp the batch.
struct ParallelPlan {
  std::int64_t layers = 0;                                   ///< layers that are run, of the card's own widths
  std::int64_t seq = 0, micro_batch = 1, micro_batches = 1;  ///< tokens, sequences, micro-batches of one replica
  std::int64_t tp = 1, cp = 1, ep = 1, pp = 1, dp = 1;
  std::int64_t virtual_stages = 1;  ///< pieces of the model on each pipeline rank
  int zero = 0;                     ///< 0 replicas, 1 and 2 optimizer and gradients sharded, 3 weights too
  std::int64_t element = 4;         ///< B of an activation, and of a weight: 4 (fp32) or 2 (bf16)

  /// Ranks of the plan; ep takes its ranks from cp x dp.
  [[nodiscard]] constexpr std::int64_t world() const { return tp * cp * pp * dp; }
  /// Tokens that one rank has of one micro-batch.
  [[nodiscard]] constexpr std::int64_t tokens() const { return micro_batch * seq / cp; }
  /// Tokens that all ranks work on in one step.
  [[nodiscard]] constexpr std::int64_t tokens_per_step() const { return micro_batch * seq * micro_batches * dp; }
  /// Ranks with the same weights.
  [[nodiscard]] constexpr std::int64_t replicas() const { return cp * dp; }
  [[nodiscard]] constexpr std::int64_t layers_per_piece() const { return layers / (pp * virtual_stages); }
};

/// Where a rank is: tp innermost, then cp, dp, pp.
struct RankPosition {
  std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
  friend bool operator==(const RankPosition&, const RankPosition&) = default;
};
constexpr RankPosition position_of(const ParallelPlan& plan, std::int64_t rank) {
  return {.tp = rank % plan.tp,
          .cp = rank / plan.tp % plan.cp,
          .dp = rank / (plan.tp * plan.cp) % plan.dp,
          .pp = rank / (plan.tp * plan.cp * plan.dp)};
}
constexpr std::int64_t rank_at(const ParallelPlan& plan, const RankPosition& at) {
  return at.tp + plan.tp * (at.cp + plan.cp * (at.dp + plan.dp * at.pp));
}
static_assert(position_of({.tp = 2, .pp = 2, .dp = 3}, 7) == RankPosition{.tp = 1, .cp = 0, .dp = 0, .pp = 1});
static_assert(rank_at({.tp = 2, .pp = 2, .dp = 3}, {.tp = 1, .cp = 0, .dp = 0, .pp = 1}) == 7);

/// The same step on one rank.
constexpr ParallelPlan undivided(ParallelPlan plan) {
  plan.micro_batches *= plan.dp;
  plan.tp = plan.cp = plan.ep = plan.pp = plan.dp = plan.virtual_stages = 1;
  plan.zero = 0;
  return plan;
}

/// The tokens of the rank at a place.
constexpr TokenPlaces tokens_of(const ParallelPlan& plan, const RankPosition& at) {
  return {.seq = plan.seq,
          .cp = plan.cp,
          .cp_rank = at.cp,
          .dp = at.dp,
          .micro_batch = plan.micro_batch,
          .micro_batches = plan.micro_batches};
}

/// A count of the plan as the size of something in memory.
constexpr std::size_t sized(std::int64_t count) { return static_cast<std::size_t>(count); }

/// The divisor of `whole` that is nearest to `wanted`; of two the smaller.
constexpr std::int64_t nearest_divisor(std::int64_t whole, std::int64_t wanted) {
  std::int64_t best = 1;
  const auto distance = [&](std::int64_t of) { return of > wanted ? of - wanted : wanted - of; };
  for (std::int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) continue;
    for (const std::int64_t one : {d, whole / d}) {
      if (distance(one) < distance(best) || (distance(one) == distance(best) && one < best)) best = one;
    }
  }
  return best;
}
static_assert(nearest_divisor(8, 3) == 2 && nearest_divisor(12, 5) == 4 && nearest_divisor(8, 100) == 8);

/// `plan` with dp so that it takes exactly `ranks` ranks. Throws BadParameter, with the nearest numbers of ranks that
/// do, when none does.
ParallelPlan on_ranks(ParallelPlan plan, std::int64_t ranks);

/// Throws BadParameter when `plan` does not divide `model`, naming the parameter, the number that it must divide and
/// the nearest that does.
void check_plan(const ModelShape& model, const ParallelPlan& plan);

/// Memory that the fullest rank needs, in B: weights, gradients (fp32), two moments and a master copy where weights are
/// not fp32, and the activations of the micro-batches in flight.
Bytes memory_needed(const ModelShape& model, const ParallelPlan& plan);

/// Throws BadParameter when that is more than `available`, naming the largest number of layers that fits, or the need
/// of one piece of the pipeline when none does.
void check_memory(const ModelShape& model, const ParallelPlan& plan, Bytes available);

}  // namespace assay::train
