// step_graph: the operations of one rank in one training step, in the order in which it starts them.
#pragma once

#include <cstdint>
#include <vector>

#include "probes/core/words.h"
#include "workloads/train/graph/parallel_plan.h"

namespace assay::train {

/// Kind of an operation, as an engine runs it.
enum class OpKind { gemm, attention, elementwise, collective, optimizer };
constexpr auto words_of(OpKind) { return names_as_words<OpKind>(); }
/// Which part of the step it belongs to. `input` is the gradient of an operand, `weight` that of a weight.
enum class Pass { forward, input, weight, update };
/// Computation or movement.
enum class Role {
  embed,           ///< rows of the embedding
  attention_norm,  ///< norm before the attention
  qkv,             ///< queries, keys and values
  latent,          ///< the narrow products of latent attention
  latent_up,       ///< heads from the narrow products
  attend,          ///< scores, softmax, values
  attention_out,   ///< heads to hidden
  mlp_norm,        ///< residual sum and norm before the MLP
  router,          ///< which experts a token goes to
  dispatch,        ///< tokens to their experts, and back after combine
  gate_up,         ///< both widening products of SwiGLU
  activate,        ///< SiLU(gate) x up
  down,            ///< the narrowing product
  shared_gate_up,
  shared_activate,
  shared_down,  ///< the same of shared experts
  combine,      ///< experts' results back to their tokens
  residual,     ///< sum with the residual
  final_norm,   ///< norm before the head
  head,         ///< logits
  loss,         ///< loss and its gradient
  boundary,     ///< activations, or gradients, between pipeline ranks
  gradients,    ///< sum of gradients over replicas
  weights,      ///< weights back from their shards
  adam,         ///< update of weights
};
/// Which ranks a collective is among.
enum class Group { none, tp, cp, ep, pp, replicas, expert_replicas };
constexpr auto words_of(Group) { return names_as_words<Group>(); }
/// Kind of a collective. `exchange` passes blocks round a ring, `exchange_sums` adds to them on their way.
enum class Motion { none, all_reduce, all_gather, reduce_scatter, all_to_all, send, receive, exchange, exchange_sums };
constexpr auto words_of(Motion) { return names_as_words<Motion>(); }

/// One operation.
struct Op {
  OpKind kind = OpKind::elementwise;
  Role role = Role::embed;
  Pass pass = Pass::forward;
  std::int64_t layer = -1;  ///< of the layers that are run, of a message the one at its end; -1 if it has none
  std::int64_t micro_batch = -1;
  std::int64_t m = 0, n = 0, k = 0;  ///< of a product: m x n from k terms; of others m x n elements
  std::int64_t flop = 0;             ///< counted by kFlopCount, nothing for element-wise work
  std::int64_t bytes = 0;            ///< memory traffic, or of a collective the payload as nccl-tests counts it
  Group group = Group::none;
  Motion motion = Motion::none;
  std::int64_t peer = -1;    ///< of send and receive: the other rank
  bool beside = false;       ///< may overlap with later operations; `adam` of the same bucket waits for it
  std::int64_t bucket = -1;  ///< of gradients, weights and adam: which parameters, see buckets_of()
};

/// Parameters that are reduced and updated together: those of one layer, or of one end.
struct Bucket {
  std::int64_t layer = -1;    ///< -1: of an end
  Role end = Role::residual;  ///< embed or head where layer is -1
  bool experts = false;       ///< the routed experts of the layer, which fewer ranks share
  std::int64_t elements = 0;  ///< on this rank
};

/// One piece of pipeline work, in the order of a rank.
struct Turn {
  bool forward = true;
  std::int64_t micro_batch = 0;
  std::int64_t piece = 0;  ///< of this rank's pieces
  friend bool operator==(const Turn&, const Turn&) = default;
};
/// One forward, one backward (1F1B), interleaved where a rank has several pieces (Narayanan et al. 2021, Efficient
/// Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, section 2.2).
std::vector<Turn> pipeline_turns(const ParallelPlan& plan, std::int64_t pp_rank);

/// The buckets of a rank at pipeline place `pp_rank`, in the order in which the backward pass completes them.
std::vector<Bucket> buckets_of(const ModelShape& model, const ParallelPlan& plan, std::int64_t pp_rank);

/// The operations of `rank`. `model` has its own number of layers; the plan's are run. A collective among one rank is
/// left out. Precondition: check_plan() passes.
std::vector<Op> step_graph(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank);

/// Ranks of the group `group` that `rank` belongs to, in order.
std::vector<std::int64_t> members_of(const ParallelPlan& plan, Group group, std::int64_t rank);

/// Memory traffic of Adam for one parameter, in B: reads gradient, weight and both moments, writes weight and moments
/// (fp32), and a bf16 copy of the weight where activations are bf16.
constexpr std::int64_t adam_bytes(std::int64_t element) {
  constexpr std::int64_t kSingles = 7, kSingle = 4;
  return kSingles * kSingle + (element == 2 ? 2 : 0);
}
static_assert(adam_bytes(2) == 30 && adam_bytes(4) == 28);

}  // namespace assay::train
