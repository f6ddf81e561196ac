// weight_kernels: first weights and tokens from their places, prints, gradients of rows and gains, and the update.
#include <algorithm>

#include <cuda_bf16.h>

#include "workloads/train_gpu/kernel_parts.cuh"
#include "workloads/train_gpu/step_kernels.h"

namespace assay::train_gpu::kernels {
namespace {

/// Eight numbers of a row for each thread.
__global__ void pack_kernel(FactorShape s, std::int64_t groups, const float* from, uint4* to) {
  constexpr int kGroup = 8;
  const std::size_t all = static_cast<std::size_t>(s.batch * s.rows * groups);
  for (std::size_t i = first_index(); i < all; i += stride()) {
    const std::int64_t at = static_cast<std::int64_t>(i), row = at / groups, first = at % groups * kGroup;
    const float* const line = from + row / s.rows * s.stride + row % s.rows * s.leading + first;
    __align__(16) float numbers[kGroup] = {};
    const bool whole = first + kGroup <= s.columns && reinterpret_cast<std::uintptr_t>(line) % sizeof(float4) == 0;
    if (whole) {
      *reinterpret_cast<float4*>(numbers) = *reinterpret_cast<const float4*>(line);
      *reinterpret_cast<float4*>(numbers + kGroup / 2) = *reinterpret_cast<const float4*>(line + kGroup / 2);
    } else {
      for (int k = 0; k < kGroup && first + k < s.columns; ++k) numbers[k] = line[k];
    }
    __align__(16) __nv_bfloat162 rounded[kGroup / 2];
    for (int k = 0; k < kGroup / 2; ++k) rounded[k] = __floats2bfloat162_rn(numbers[2 * k], numbers[2 * k + 1]);
    to[i] = *reinterpret_cast<const uint4*>(rounded);
  }
}

__global__ void fold_kernel(float* values, std::size_t count) {
  for (std::size_t i = first_index(); i < count; i += stride()) values[i] = train::residue(values[i]);
}
__global__ void tokens_kernel(train::TokenDraw draw, std::int32_t* to) {
  for (std::size_t i = first_index(); i < draw.size(); i += stride()) to[i] = draw.token(i);
}

template <class Number>
__global__ void draw_kernel(train::WeightBlock block, bool exact, float* master, Number* copy) {
  for (std::size_t i = first_index(); i < block.size(); i += stride()) {
    const std::size_t row = i / block.count, column = i - row * block.count;
    const std::uint64_t bits = block.bits(train::kStepSeed, row, column);
    const auto parts = train::normal_parts<float>(bits);
    const float normal = sqrtf(-2 * logf(parts.radius)) * cospif(2 * parts.turn);
    const float value = exact ? train::whole_weight(bits) : block.gain ? 1 : train::kWeightSpread * normal;
    const std::size_t place = block.at(row, column);
    master[place] = value;
    if (copy != nullptr) copy[place] = train::narrowed<Number>(value);
  }
}

/// A sum modulo 2^64, and a count: the same in any order.
template <class Kind>
__global__ void print_kernel(train::WeightBlock block, const Kind* from, unsigned long long* sums) {
  unsigned long long print = 0, wrong = 0;
  for (std::size_t i = first_index(); i < block.size(); i += stride()) {
    const std::size_t row = i / block.count, column = i - row * block.count;
    const float value = train::widened(from[block.at(row, column)]);
    print += block.print(row, column, value);
    wrong += train::is_finite(value) ? 0 : 1;
  }
  for (int half = warpSize / 2; half > 0; half /= 2) {
    print += __shfl_down_sync(0xffffffff, print, half);
    wrong += __shfl_down_sync(0xffffffff, wrong, half);
  }
  if (threadIdx.x % warpSize != 0) return;
  if (block.printed) atomicAdd(sums, print);
  if (wrong > 0) atomicAdd(sums + 1, wrong);
}

template <class Number>
__global__ void embed_kernel(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                             const std::int32_t* tokens, const Number* table, Number* out) {
  const std::size_t groups = width / kGroup<Number>;
  for (std::size_t i = first_index(); i < rows * groups; i += stride()) {
    const std::size_t column = i % groups * kGroup<Number>;
    const std::int64_t row = tokens[i / groups] - first;
    const bool own = row >= 0 && row < static_cast<std::int64_t>(here);
    Group<Number> group = {};
    if (own) group = load(table + static_cast<std::size_t>(row) * width + column);
    store(out + i / groups * width + column, group);
  }
}
/// A block for each place; the one of the first place of a token adds the rows of all its places, in their order.
template <class Number>
__global__ void embed_back_kernel(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                                  const std::int32_t* tokens, const Number* above, float* gradients) {
  __shared__ bool same[kThreads];
  for (std::size_t place = blockIdx.x; place < rows; place += gridDim.x) {
    const std::int32_t token = tokens[place];
    const std::int64_t row = token - first;
    if (row < 0 || row >= static_cast<std::int64_t>(here)) continue;
    bool before = false;
    for (std::size_t i = threadIdx.x; i < place; i += kThreads) before = before || tokens[i] == token;
    if (__syncthreads_or(before)) continue;
    float* const to = gradients + static_cast<std::size_t>(row) * width;
    for (std::size_t begin = place; begin < rows; begin += kThreads) {
      const std::size_t own = begin + threadIdx.x;
      same[threadIdx.x] = own < rows && tokens[own] == token;
      if (!__syncthreads_or(same[threadIdx.x])) continue;
      for (std::size_t k = 0; k < kThreads; ++k) {
        if (!same[k]) continue;
        const Number* const from = above + (begin + k) * width;
        for (std::size_t i = threadIdx.x; i < width; i += kThreads) to[i] += train::widened(from[i]);
      }
      __syncthreads();
    }
  }
}

template <class Number>
__global__ void adam_kernel(std::size_t count, train::AdamState s, Number* copy, bool exact) {
  for (std::size_t i = first_index(); i < count; i += stride()) {
    const float gradient = s.gradients[i];
    float weight = s.weights[i];
    if (exact) {
      weight = train::residue(weight - 2 * train::residue(gradient));
    } else {
      const float first = kFirstKept * s.first[i] + (1 - kFirstKept) * gradient;
      const float second = kSecondKept * s.second[i] + (1 - kSecondKept) * gradient * gradient;
      s.first[i] = first;
      s.second[i] = second;
      weight -= kRate * first / (sqrtf(second) + 1e-8F);
    }
    s.weights[i] = weight;
    if (copy != nullptr) copy[i] = train::narrowed<Number>(weight);
  }
}

}  // namespace

void pack(const FactorShape& from_shape, const float* from, void* to, const cuda::Stream& stream) {
  const std::int64_t groups = packed(from_shape).leading / 8;
  const auto threads = static_cast<std::size_t>(from_shape.batch * from_shape.rows * groups);
  pack_kernel<<<blocks_for(threads), kThreads, 0, stream.get()>>>(from_shape, groups, from, static_cast<uint4*>(to));
  launched("rounding factors to BF16");
}
void fold(float* values, std::size_t count, const cuda::Stream& stream) {
  fold_kernel<<<blocks_for(count), kThreads, 0, stream.get()>>>(values, count);
  launched("folding");
}
void tokens(const train::TokenDraw& draw, std::int32_t* to, const cuda::Stream& stream) {
  tokens_kernel<<<blocks_for(draw.size()), kThreads, 0, stream.get()>>>(draw, to);
  launched("tokens");
}
template <class Kind>
void print(const train::WeightBlock& block, const Kind* from, std::uint64_t* sums, const cuda::Stream& stream) {
  constexpr unsigned kBlocks = 4096;  // a few sums for each SM
  const unsigned blocks = std::min(blocks_for(block.size()), kBlocks);
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  print_kernel<<<blocks, kThreads, 0, stream.get()>>>(block, from, reinterpret_cast<unsigned long long*>(sums));
  launched("a print");
}
template void print(const train::WeightBlock&, const float*, std::uint64_t*, const cuda::Stream&);
template void print(const train::WeightBlock&, const train::Bf16*, std::uint64_t*, const cuda::Stream&);

template <class Number>
void WeightKernels<Number>::draw(const train::WeightBlock& block, bool exact, float* master, Number* copy,
                                 const cuda::Stream& stream) {
  draw_kernel<<<blocks_for(block.size()), kThreads, 0, stream.get()>>>(block, exact, master, copy);
  launched("drawing weights");
}
template <class Number>
void WeightKernels<Number>::embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                                  const std::int32_t* tokens, const Number* table, Number* out,
                                  const cuda::Stream& stream) {
  embed_kernel<<<blocks_for(rows * (width / kGroup<Number>)), kThreads, 0, stream.get()>>>(rows, width, first, here,
                                                                                           tokens, table, out);
  launched("the embedding");
}
template <class Number>
void WeightKernels<Number>::embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                                       const std::int32_t* tokens, const Number* above, float* gradients,
                                       const cuda::Stream& stream) {
  embed_back_kernel<<<rows_for(rows), kThreads, 0, stream.get()>>>(rows, width, first, here, tokens, above, gradients);
  launched("the gradient of the embedding");
}
template <class Number>
void WeightKernels<Number>::adam(std::size_t count, const train::AdamState& state, Number* copy, bool exact,
                                 const cuda::Stream& stream) {
  if (count == 0) return;
  adam_kernel<<<blocks_for(count), kThreads, 0, stream.get()>>>(count, state, copy, exact);
  launched("the update");
}

template struct WeightKernels<float>;
template struct WeightKernels<train::Bf16>;

}  // namespace assay::train_gpu::kernels
