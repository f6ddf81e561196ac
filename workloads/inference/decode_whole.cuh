// decode_whole: a step in ring numbers once more on the GPU: whole numbers, one thread for each result, one sum after
// another, weights and cache drawn anew instead of read. Nothing of decode_kernels is used. Slow and plain on purpose.
//
// The words of CUDA come from the file that includes this, as for decode_kernels.
#pragma once

#include "workloads/inference/decode_sizes.h"

namespace assay::inference::whole {

constexpr unsigned kThreads = 256;

__device__ inline std::int64_t own_index() { return std::int64_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ inline int drawn(std::uint64_t seed, std::int64_t place) {
  return ring_number(collective::mixed(seed, static_cast<std::uint64_t>(place)));
}

/// y, batch x rows, of x; added to y, or in its place.
__global__ void __launch_bounds__(kThreads)
    product_kernel(MatrixPlace at, std::uint64_t seed, std::int64_t batch, const int* x, int* y, bool add) {
  const std::int64_t i = own_index();
  if (i >= batch * at.rows) return;
  const std::int64_t sequence = i / at.rows, row = i % at.rows;
  std::int64_t sum = 0;
  for (std::int64_t c = 0; c < at.columns; ++c)
    sum += drawn(seed, at.begin + row * at.columns + c) * x[sequence * at.columns + c];
  y[i] = residue(add ? y[i] + sum : sum);
}

/// One query head, blockIdx.x, of one sequence, blockIdx.y: 256 tokens' scores, one for each thread, then each number's
/// sum over them. The token that is being made has its keys and values in `qkv`.
__global__ void __launch_bounds__(kThreads)
    attend_kernel(DecodeSizes s, std::uint64_t seed, std::int64_t layer, const int* qkv, int* attended) {
  __shared__ int scores[kThreads];
  const std::int64_t sequence = blockIdx.y, head = blockIdx.x, kv_head = head / s.group();
  const int* const own = qkv + sequence * s.qkv();
  const int* const key = own + s.q() + kv_head * s.head_dim;
  const auto number = [&](std::int64_t token, bool values, std::int64_t d) {
    if (token + 1 == s.context) return key[(values ? s.kv() : 0) + d];
    return drawn(
        seed,
        drawn_place(s, {.layer = layer, .sequence = sequence, .kv_head = kv_head, .values = values, .token = token}) +
            d);
  };
  std::int64_t sum = 0;  // of number threadIdx.x of the head
  for (std::int64_t first = 0; first < s.context; first += kThreads) {
    const std::int64_t token = first + threadIdx.x;
    std::int64_t score = 0;
    for (std::int64_t d = 0; d < s.head_dim && token < s.context; ++d)
      score += own[head * s.head_dim + d] * number(token, false, d);
    scores[threadIdx.x] = residue(score);
    __syncthreads();
    for (std::int64_t t = first; t < first + kThreads && t < s.context && threadIdx.x < s.head_dim; ++t)
      sum += scores[t - first] * number(t, true, threadIdx.x);
    __syncthreads();
  }
  if (threadIdx.x < s.head_dim) attended[sequence * s.q() + head * s.head_dim + threadIdx.x] = residue(sum);
}

__global__ void __launch_bounds__(kThreads) activate_kernel(DecodeSizes s, const int* gate_up, int* inner) {
  const std::int64_t i = own_index();
  if (i >= s.batch * s.ffn) return;
  const int* const gate = gate_up + i / s.ffn * 2 * s.ffn + i % s.ffn;
  inner[i] = residue(gate[0] * gate[s.ffn]);
}

/// The input of a step, in whole numbers.
__global__ void __launch_bounds__(kThreads) input_kernel(std::int64_t count, const float* from, int* to) {
  if (own_index() < count) to[own_index()] = static_cast<int>(from[own_index()]);
}

/// Adds to *wrong how many of `found` are not `expected`; NaN is none of them.
__global__ void __launch_bounds__(kThreads)
    compare_kernel(std::int64_t count, const float* found, const int* expected, unsigned long long* wrong) {
  const std::int64_t i = own_index();
  if (i < count && !(found[i] == static_cast<float>(expected[i]))) atomicAdd(wrong, 1ULL);
}

}  // namespace assay::inference::whole
