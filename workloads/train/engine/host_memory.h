// host_memory: the activations of one rank and where each operation reads and writes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "workloads/train/engine/expert_routes.h"
#include "workloads/train/engine/head_layout.h"
#include "workloads/train/engine/host_weights.h"

namespace assay::train {

/// Operands of one operation. A product: c = a b, row by row; transposed where it says so. Products of several routed
/// experts are left to ExpertWork.
struct Call {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  int m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool a_turned = false, b_turned = false;  ///< transposed
  float kept = 0;                           ///< factor of c's old values: 0 overwrites, 1 adds
  std::span<float> out;                     ///< its result, for prints; of a collective its buffer
  std::span<float> sent;                    ///< of an all_to_all, the data to send; out is the data received
  bool of_experts = false;                  ///< a product of routed experts
};

/// Activations that the backward pass of one micro-batch needs of one layer with experts.
struct ExpertMemory {
  std::span<float> logits;                ///< of the router: for each tp rank, its columns of all tokens
  std::span<float> gates;                 ///< of each copy that was sent
  std::span<float> inputs, both, active;  ///< of this rank's experts, rows sorted by expert
  std::span<float> returned;              ///< results of the copies that were sent
  std::span<float> shared_both, shared_active;
};

/// Activations that the backward pass of one micro-batch needs of one layer.
struct LayerMemory {
  std::span<float> x;  ///< input
  std::span<float> normed, inverse;
  std::span<float> qkv, probabilities, attended;
  std::span<float> middle;  ///< after the attention's residual sum
  std::span<float> mlp_normed, mlp_inverse;
  std::span<float> both;  ///< rows of gates, then as many ups
  std::span<float> active;
  ExpertMemory experts;
};

/// Room for data between two operations of a layer with experts.
struct ExpertScratch {
  std::span<float> copies, copies_back;  ///< of the tokens of this rank, in the order in which they are sent
  std::span<float> arrived, leaving;     ///< of the experts of this rank, in the order of their senders
  std::span<float> outputs, output_gradients, input_gradients;  ///< rows sorted by expert
  std::span<float> both_gradient, active_gradient, shared_both_gradient, shared_active_gradient;
  std::span<float> logit_gradients, token_sums, copy_sums;
};

/// Source of memory: so many numbers, all 0, which outlive their users.
using Take = std::function<std::span<float>(std::size_t)>;

// Slots and layers. A micro-batch has one slot from its forward to its backward pass; then another takes it. In each
// slot a rank has its pieces of the pipeline one after the other, and behind each piece one entry more, of which only x
// is used: the output of the last layer. Example: pp = 2, virtual_stages = 2, 2 layers a piece. Rank 0 has the pieces 0
// and 2 of the model, that is layers 0, 1 and 4, 5:
//
//   slots[0]   | layer 0 | layer 1 | out | layer 4 | layer 5 | out |     place(4) = 3
//   slots[1]   | layer 0 | layer 1 | out | layer 4 | layer 5 | out |
//              x -> normed -> qkv -> attended -> middle -> mlp_normed -> both -> active -> x of the next entry
//
// There are as many slots as a piece has micro-batches between their forward and backward passes at one time. Memory
// needed within one layer only (gradients, room for experts) exists once and is shared by all layers and slots.

/// All activations of a rank, on a host or on a device.
struct StepMemory {
  StepMemory(const ModelShape& model, const ParallelPlan& plan, const RankPosition& at, const ExpertRoutes& routes,
             const Take& take);

  [[nodiscard]] std::size_t slot(std::int64_t micro_batch) const {
    return static_cast<std::size_t>(micro_batch) % slots.size();
  }
  [[nodiscard]] LayerMemory& layer(std::int64_t number, std::int64_t micro_batch) {
    return slots[slot(micro_batch)][place(number)];
  }
  /// Input of the layer after `number`, which is the output of this one.
  [[nodiscard]] std::span<float> after(std::int64_t number, std::int64_t micro_batch) {
    return slots[slot(micro_batch)][place(number) + 1].x;
  }
  /// Place of a layer among those of this rank: each piece of the pipeline has one more, for its output.
  [[nodiscard]] std::size_t place(std::int64_t number) const {
    const std::int64_t piece = number / (layers_per_piece * pipeline);
    return sized(piece * (layers_per_piece + 1) + number % layers_per_piece);
  }

  std::int64_t layers_per_piece = 0, pipeline = 1;
  std::vector<std::vector<LayerMemory>> slots;  ///< [micro-batch in flight][layer]
  std::span<float> sum;                         ///< output of a row-divided product, before it is added
  std::span<float> gradient, normed_gradient, qkv_gradient, both_gradient, active_gradient, attended_gradient;
  std::span<float> scores_gradient;      ///< of one head
  std::span<float> keys, keys_gradient;  ///< keys and values of a divided sequence, by rank; empty: undivided
  std::span<float> final_normed, final_inverse, logits, row_sums;
  ExpertScratch scratch;

 private:
  void take_layer(LayerMemory& one, const ModelShape& m, const ParallelPlan& plan, std::int64_t layer,
                  const ExpertRoutes& routes, const Take& take) const;
  void take_experts(ExpertMemory& one, const ModelShape& m, const ParallelPlan& plan, std::size_t rows,
                    const Take& take) const;
  void take_scratch(const ModelShape& m, const ParallelPlan& plan, std::size_t rows, const Take& take);
};

/// Memory of this host.
class HostBuffers {
 public:
  std::span<float> take(std::size_t count) { return buffers_.emplace_back(count, 0.0F); }

 private:
  std::vector<std::vector<float>> buffers_;
};

/// The Call of every operation of `ops`. `weights` and `memory` must outlive them.
std::vector<Call> bind_calls(const std::vector<Op>& ops, const ModelShape& model, const ParallelPlan& plan,
                             const ExpertRoutes& routes, HostWeights& weights, StepMemory& memory);

/// Causal attention of all heads, in blocks of rows: probabilities are kept. `keys` has the keys and values of all
/// ranks of a divided sequence: [rank][sequence][token of that rank][keys of all heads, then values].
void attend(const HeadShape& shape, LayerMemory& memory, std::span<const float> keys);
/// Gradients and the room for them.
struct HeadGradients {
  std::span<const float> above;  ///< of attention's output
  std::span<float> qkv;
  std::span<float> keys;    ///< as `keys` of attend()
  std::span<float> scores;  ///< room for one head's block
};
/// The gradient of queries, keys and values; those of keys and values of a divided sequence are left in `to.keys`.
void attend_back(const HeadShape& shape, LayerMemory& memory, std::span<const float> keys, const HeadGradients& to);
/// Copies this rank's keys and values from rows of `qkv` to their place in `keys`, and their gradients back.
void lend_keys(const HeadShape& shape, std::span<const float> qkv, std::span<float> keys);
void take_keys(const HeadShape& shape, std::span<const float> keys, std::span<float> qkv);
/// Rows of queries that are computed together: the later blocks see more keys.
inline constexpr std::size_t kQueryBlock = 64;

/// c = a b of the library, one thread.
void multiply(const Call& call);

}  // namespace assay::train
