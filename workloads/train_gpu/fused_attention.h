// fused_attention: causal attention of one rank by cuDNN. No header of CUDA is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/train/engine/head_layout.h"
#include "workloads/train_gpu/cudnn.h"
#include "workloads/train_gpu/device_attention.h"

namespace assay::train_gpu {

/// Names of tensors and numbers of both graphs. `room`: sums of a row, fp32, one for each query of each head; `added`:
/// gradients of queries before they are rounded, fp32, where sums have no order.
enum AttentionId : std::int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kAttended,
  kStatistics,
  kAbove,
  kQueriesGradient,
  kKeysGradient,
  kValuesGradient,
  kRoom,
  kAdded,
  kScale,
  kMasked,
  kOne
};

/// Both passes. Queries, keys and values, and their gradients, are parts of rows of row_of_all(), the result and its
/// gradient are rows of all heads; statistics are log(sum(exp)) of each query of each head: [sequence][head][query].
struct AttentionPlans {
  cudnn::Plan forward, backward;
  bool adds = false;  ///< the backward pass needs kAdded, and its sums have no order
};

/// The order of sums in the backward pass: one, or no plan; one, if the library has such a plan; any.
enum class SumOrder { one, one_if_offered, any };

/// Plans for undivided sequences of `shape`: BF16 numbers, fp32 sums and statistics. That sums have one order is known
/// of the front end's graph for deterministic passes, which needs room for the scores of all heads. Throws
/// cudnn::Unsupported with the library's words.
AttentionPlans attention_plans(const cudnn::Functions& call, const cudnn::Target& target, const train::HeadShape& shape,
                               SumOrder order);

/// Attention of BF16 numbers on the current device, for one shape.
class FusedAttention {
 public:
  /// Throws as Functions::open().
  static void demand_library() { (void)cudnn::Functions::open(); }

  /// Opens the library and makes both plans; allocates no memory of the device but a handle's. Throws Skip without the
  /// library, cudnn::Unsupported when it has no plan, std::runtime_error when it fails.
  FusedAttention(const train::HeadShape& shape, SumOrder order);
  FusedAttention(const FusedAttention&) = delete;
  FusedAttention& operator=(const FusedAttention&) = delete;

  /// B of AttentionPlaces::room.
  [[nodiscard]] std::uint64_t room() const;
  /// Whether sums of the backward pass have one order.
  [[nodiscard]] bool ordered() const { return !plans_.adds && plans_.backward.ordered; }
  /// "cuDNN 9.19.0, engines 2 and 6, sums of the backward pass in one order".
  [[nodiscard]] std::string words() const;

  /// Enqueues a pass in `stream`: the result and the statistics; the gradients of queries, keys and values. Throws
  /// std::runtime_error with the library's words.
  void forward(CUstream_st* stream, const AttentionPlaces<train::Bf16>& at);
  void backward(CUstream_st* stream, const AttentionPlaces<train::Bf16>& at);

 private:
  void run(CUstream_st* stream, const cudnn::Plan& plan, std::vector<cudnn::Pointer> pointers, std::byte* room);

  cudnn::Functions call_;
  std::unique_ptr<void, int (*)(void*)> handle_;
  train::HeadShape shape_;
  AttentionPlans plans_;
  float scale_;
};

}  // namespace assay::train_gpu
