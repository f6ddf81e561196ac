// fused_attention: causal attention of one rank by cuDNN. No header of CUDA is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/train_gpu/attention_plans.h"
#include "workloads/train_gpu/device_attention.h"

namespace assay::train_gpu {

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
