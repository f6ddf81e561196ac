// pipeline: the order of forward and backward pieces on one rank of a pipeline.
#include <algorithm>

#include "workloads/train/graph/step_graph.h"

namespace assay::train {
namespace {

/// Piece number `index` of all forward, or backward, pieces of a rank that has several: micro-batches in groups as
/// large as the pipeline, each group through all of the rank's pieces.
Turn interleaved(const ParallelPlan& plan, std::int64_t index, bool forward) {
  const std::int64_t group = plan.pp * plan.virtual_stages;
  const std::int64_t piece = index % group / plan.pp;
  return {.forward = forward,
          .micro_batch = index / group * plan.pp + index % plan.pp,
          .piece = forward ? piece : plan.virtual_stages - 1 - piece};
}

}  // namespace

std::vector<Turn> pipeline_turns(const ParallelPlan& plan, std::int64_t pp_rank) {
  const std::int64_t all = plan.micro_batches * plan.virtual_stages, behind = plan.pp - pp_rank - 1;
  const std::int64_t ahead =
      std::min(all, plan.virtual_stages == 1 ? behind : 2 * behind + (plan.virtual_stages - 1) * plan.pp);
  std::vector<Turn> turns;
  for (std::int64_t i = 0; i < ahead; ++i) turns.push_back(interleaved(plan, i, true));
  for (std::int64_t i = ahead; i < all; ++i) {
    turns.push_back(interleaved(plan, i, true));
    turns.push_back(interleaved(plan, i - ahead, false));
  }
  for (std::int64_t i = all - ahead; i < all; ++i) turns.push_back(interleaved(plan, i, false));
  return turns;
}

}  // namespace assay::train
