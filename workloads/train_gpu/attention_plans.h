// attention_plans: causal attention as graphs of cuDNN, which knows their pattern and runs each as fused kernels. The
// pattern is that of NVIDIA's own front end (github.com/NVIDIA/cudnn-frontend 1.23.0, 2026-05-08:
// scaled_dot_product_flash_attention.h, softmax.h, diagonal_band_mask.h).
#pragma once

#include <cstdint>

#include "workloads/train/engine/head_layout.h"
#include "workloads/train_gpu/cudnn.h"

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

}  // namespace assay::train_gpu
