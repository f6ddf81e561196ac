// host_memory: the activations of one rank and where each operation reads and writes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/train/host_engine.h"

namespace assay::train {

/// What one operation works on. A product: c = a b, row by row; transposed where it says so.
struct Call {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  int m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool a_turned = false, b_turned = false;
  float kept = 0;        ///< of what c was: 0 or 1
  std::span<float> out;  ///< what it leaves, for prints, and of a collective what it moves
};

/// Activations that the backward pass of one micro-batch needs of one layer.
struct LayerMemory {
  std::vector<float> x;  ///< input
  std::vector<float> normed, inverse;
  std::vector<float> qkv, probabilities, attended;
  std::vector<float> middle;  ///< after the attention's residual sum
  std::vector<float> mlp_normed, mlp_inverse;
  std::vector<float> both, active;
};

/// All activations of a rank.
struct HostMemory {
  HostMemory(const ModelShape& model, const ParallelPlan& plan, std::int64_t pp_rank);

  [[nodiscard]] std::size_t slot(std::int64_t micro_batch) const {
    return static_cast<std::size_t>(micro_batch) % slots.size();
  }
  [[nodiscard]] LayerMemory& layer(std::int64_t number, std::int64_t micro_batch) {
    return slots[slot(micro_batch)][static_cast<std::size_t>(number - first_layer)];
  }
  /// Input of the layer after `number`, which is the output of this one.
  [[nodiscard]] std::vector<float>& after(std::int64_t number, std::int64_t micro_batch) {
    return slots[slot(micro_batch)][static_cast<std::size_t>(number - first_layer) + 1].x;
  }

  std::int64_t first_layer = 0;
  std::vector<std::vector<LayerMemory>> slots;  ///< [micro-batch in flight][layer, and one more for the output]
  std::vector<float> sum;                       ///< output of a row-divided product, before it is added
  std::vector<float> gradient, normed_gradient, qkv_gradient, both_gradient, active_gradient, attended_gradient;
  std::vector<float> scores_gradient;  ///< of one head
  std::vector<float> final_normed, final_inverse, logits, row_sums;
  std::vector<std::int64_t> tokens;  ///< of one micro-batch
};

/// The Call of every operation of `ops`. `weights` and `memory` must outlive them.
std::vector<Call> bind_calls(const std::vector<Op>& ops, const ModelShape& model, const ParallelPlan& plan,
                             HostWeights& weights, HostMemory& memory);

/// One sequence-parallel set of heads of one rank.
struct HeadShape {
  std::size_t sequences = 0, seq = 0, heads = 0, kv_heads = 0, width = 0;
  bool exact = false;
};
/// Causal attention of all heads, in blocks of rows: probabilities are kept.
void attend(const HeadShape& shape, LayerMemory& memory);
/// The gradient of queries, keys and values. `scores` is room for one head's block.
void attend_back(const HeadShape& shape, LayerMemory& memory, std::span<const float> above, std::span<float> gradient,
                 std::span<float> scores);
/// Rows of queries that are computed together: the later blocks see more keys.
inline constexpr std::size_t kQueryBlock = 64;

/// c = a b of the library, one thread.
void multiply(const Call& call);

}  // namespace assay::train
