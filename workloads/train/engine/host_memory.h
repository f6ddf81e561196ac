// host_memory: the activations of one rank and where each operation reads and writes.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "workloads/train/engine/expert_routes.h"
#include "workloads/train/engine/head_layout.h"
#include "workloads/train/engine/host_weights.h"

namespace assay::train {

/// Operands of one operation. A product: c = a b, row by row; transposed where it says so. Products of several routed
/// experts are left to ExpertWork. Activations and weights of products are kept as
/// `Number`; gradients of weights and sums over tokens are fp32.
template <class Number>
struct CallOf {
  const Number* a = nullptr;
  const Number* b = nullptr;
  Number* c = nullptr;  ///< of a product; of one of weights' gradients `gradient`
  float* gradient = nullptr;
  int m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool a_turned = false, b_turned = false;  ///< transposed
  float kept = 0;                           ///< factor of c's old values: 0 overwrites, 1 adds
  std::span<Number> out = {};               ///< its result, for prints; of a collective its buffer
  std::span<float> sums = {};               ///< the same if it is fp32 in any case; one of both is empty
  std::span<Number> sent = {};              ///< of an all_to_all, the data to send; out is the data received
  bool of_experts = false;                  ///< a product of routed experts
  /// Of a host, where both are fp32.
  [[nodiscard]] std::span<float> result() const requires std::same_as<Number, float> {
    return out.empty() ? sums : out;
  }
};
using Call = CallOf<float>;

/// Activations that the backward pass of one micro-batch needs of one layer with experts.
template <class Number>
struct ExpertMemoryOf {
  std::span<Number> logits;                ///< of the router: for each tp rank, its columns of all tokens
  std::span<float> gates;                  ///< of each copy that was sent
  std::span<Number> inputs, both, active;  ///< of this rank's experts, rows sorted by expert
  std::span<Number> returned;              ///< results of the copies that were sent
  std::span<Number> shared_both, shared_active;
};

/// Activations that the backward pass of one micro-batch needs of one layer.
template <class Number>
struct LayerMemoryOf {
  std::span<Number> x;  ///< input
  std::span<Number> normed;
  std::span<float> inverse;
  std::span<Number> qkv, probabilities, attended;
  std::span<float> statistics;  ///< of fused attention, in the place of probabilities: one of each query and head
  std::span<Number> middle;     ///< after the attention's residual sum
  std::span<Number> mlp_normed;
  std::span<float> mlp_inverse;
  std::span<Number> both;  ///< rows of gates, then as many ups
  std::span<Number> active;
  ExpertMemoryOf<Number> experts;
};
using LayerMemory = LayerMemoryOf<float>;
using ExpertMemory = ExpertMemoryOf<float>;

/// Room for data between two operations of a layer with experts.
template <class Number>
struct ExpertScratchOf {
  std::span<Number> copies, copies_back;  ///< of the tokens of this rank, in the order in which they are sent
  std::span<Number> arrived, leaving;     ///< of the experts of this rank, in the order of their senders
  std::span<Number> outputs, output_gradients, input_gradients;  ///< rows sorted by expert
  std::span<Number> both_gradient, active_gradient, shared_both_gradient, shared_active_gradient;
  std::span<Number> logit_gradients;
  std::span<float> token_sums, copy_sums;
};
using ExpertScratch = ExpertScratchOf<float>;

/// Source of memory: so many numbers, all 0, which outlive their users; of activations, and of fp32.
template <class Number>
struct TakeFrom {
  std::function<std::span<Number>(std::size_t)> numbers;
  std::function<std::span<float>(std::size_t)> sums;
  bool fused = false;  ///< attention keeps statistics
};

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
template <class Number>
struct StepMemoryOf {
  using Layer = LayerMemoryOf<Number>;
  using Take = TakeFrom<Number>;
  StepMemoryOf(const ModelShape& model, const ParallelPlan& plan, const RankPosition& at, const ExpertRoutes& routes,
               const Take& take);

  [[nodiscard]] std::size_t slot(std::int64_t micro_batch) const {
    return static_cast<std::size_t>(micro_batch) % slots.size();
  }
  [[nodiscard]] Layer& layer(std::int64_t number, std::int64_t micro_batch) {
    return slots[slot(micro_batch)][place(number)];
  }
  /// Input of the layer after `number`, which is the output of this one.
  [[nodiscard]] std::span<Number> after(std::int64_t number, std::int64_t micro_batch) {
    return slots[slot(micro_batch)][place(number) + 1].x;
  }
  /// Place of a layer among those of this rank: each piece of the pipeline has one more, for its output.
  [[nodiscard]] std::size_t place(std::int64_t number) const {
    const std::int64_t piece = number / (layers_per_piece * pipeline);
    return sized(piece * (layers_per_piece + 1) + number % layers_per_piece);
  }

  std::int64_t layers_per_piece = 0, pipeline = 1;
  std::vector<std::vector<Layer>> slots;  ///< [micro-batch in flight][layer]
  std::span<Number> sum;                  ///< output of a row-divided product, before it is added
  std::span<Number> gradient, normed_gradient, qkv_gradient, both_gradient, active_gradient, attended_gradient;
  std::span<Number> scores_gradient;      ///< of one head, on a host
  std::span<Number> keys, keys_gradient;  ///< keys and values of a divided sequence, by rank; empty: undivided
  std::span<Number> final_normed, logits;
  std::span<float> final_inverse, row_sums;
  ExpertScratchOf<Number> scratch;

 private:
  void take_layer(Layer& one, const ModelShape& m, const ParallelPlan& plan, std::int64_t layer,
                  const ExpertRoutes& routes, const Take& take) const;
  void take_experts(ExpertMemoryOf<Number>& one, const ModelShape& m, const ParallelPlan& plan, std::size_t rows,
                    const Take& take) const;
  void take_scratch(const ModelShape& m, const ParallelPlan& plan, std::size_t rows, const Take& take);
};
using StepMemory = StepMemoryOf<float>;

/// Memory of this host.
class HostBuffers {
 public:
  std::span<float> take(std::size_t count) { return buffers_.emplace_back(count, 0.0F); }
  TakeFrom<float> taker() {
    const auto one = [this](std::size_t count) { return take(count); };
    return {.numbers = one, .sums = one};
  }

 private:
  std::vector<std::vector<float>> buffers_;
};

/// The Call of every operation of `ops`. `weights` and `memory` must outlive them.
template <class Number>
std::vector<CallOf<Number>> bind_calls(const std::vector<Op>& ops, const ModelShape& model, const ParallelPlan& plan,
                                       const ExpertRoutes& routes, const RankWeights<Number>& weights,
                                       StepMemoryOf<Number>& memory);

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
