// fused_attention: the pointers of every run. The room of a rank is the plans' workspace, then sums of rows, then
// gradients that are added up.
#include "workloads/train_gpu/fused_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace assay::train_gpu {
namespace {

constexpr float kOnce = 1;
constexpr float kUnseen = -std::numeric_limits<float>::infinity();  // as the front end from 9.10 on

std::unique_ptr<void, int (*)(void*)> created(const cudnn::Functions& call) {
  void* handle = nullptr;
  call.demand(call.create_handle(&handle), "cudnnCreate");
  return {handle, call.destroy_handle};
}

std::uint64_t whole_pieces(std::uint64_t size) {
  constexpr std::uint64_t kPiece = 256;  // as those of an Arena
  return (size + kPiece - 1) / kPiece * kPiece;
}

std::uint64_t workspace_of(const AttentionPlans& plans) {
  return whole_pieces(static_cast<std::uint64_t>(std::max(plans.forward.workspace, plans.backward.workspace)));
}

/// B of an fp32 number for each query of each head.
std::uint64_t sums_of(const train::HeadShape& s) { return whole_pieces(sizeof(float) * s.sequences * s.heads * s.seq); }

}  // namespace

FusedAttention::FusedAttention(const train::HeadShape& shape, SumOrder order)
    : call_(cudnn::Functions::open()),
      handle_(created(call_)),
      shape_(shape),
      plans_(attention_plans(call_, {.handle = handle_.get()}, shape, order)),
      scale_(1 / std::sqrt(static_cast<float>(shape.width))) {}

std::uint64_t FusedAttention::room() const {
  return workspace_of(plans_) + sums_of(shape_) + (plans_.adds ? sums_of(shape_) * shape_.width : 0);
}

std::string FusedAttention::words() const {
  return fmt::format("cuDNN {}, engines {} and {}, sums of the backward pass in {}", call_.version(),
                     plans_.forward.engine, plans_.backward.engine, ordered() ? "one order" : "any order");
}

void FusedAttention::run(CUstream_st* stream, const cudnn::Plan& plan, std::vector<cudnn::Pointer> pointers,
                         std::byte* room) {
  call_.demand(call_.set_stream(handle_.get(), stream), "cudnnSetStream");
  pointers.push_back({kScale, &scale_});
  pointers.push_back({kMasked, &kUnseen});
  cudnn::run(call_, handle_.get(), plan, pointers, room);
}

void FusedAttention::forward(CUstream_st* stream, const AttentionPlaces<train::Bf16>& at) {
  const train::Bf16* const keys = at.qkv + shape_.heads * shape_.width;
  run(stream, plans_.forward,
      {{kQueries, at.qkv},
       {kKeys, keys},
       {kValues, keys + shape_.kv_heads * shape_.width},
       {kAttended, at.attended},
       {kStatistics, at.statistics}},
      at.room);
}

void FusedAttention::backward(CUstream_st* stream, const AttentionPlaces<train::Bf16>& at) {
  const std::size_t keys = shape_.heads * shape_.width, values = keys + shape_.kv_heads * shape_.width;
  std::byte* const sums = at.room + workspace_of(plans_);
  std::vector<cudnn::Pointer> pointers = {{kQueries, at.qkv},
                                          {kKeys, at.qkv + keys},
                                          {kValues, at.qkv + values},
                                          {kAttended, at.attended},
                                          {kStatistics, at.statistics},
                                          {kAbove, at.above},
                                          {kQueriesGradient, at.qkv_gradient},
                                          {kKeysGradient, at.qkv_gradient + keys},
                                          {kValuesGradient, at.qkv_gradient + values},
                                          {kRoom, sums},
                                          {kOne, &kOnce}};
  if (plans_.adds) pointers.push_back({kAdded, sums + sums_of(shape_)});
  run(stream, plans_.backward, std::move(pointers), at.room);
}

}  // namespace assay::train_gpu
