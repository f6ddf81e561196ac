// decode_kernels: the kernels of a step on a GPU. Each has blocks of kThreads threads; sums have one order.
//
// A product multiplies 16 rows of weights with 8 sequences in one instruction of the tensor cores (m16n8k16). That
// instruction wants of thread t of a group of four the columns 2t, 2t+1, 2t+8 and 2t+9. A sum may take its columns in
// any order as long as weights and inputs have the same one: so thread t loads 8 neighbours, from column
// 8t of 32, of its rows of the weights and of its sequence, and gives the first four to one instruction and the last
// four to another. All loads are then of 16 bytes, and of each row 64 bytes are read together.
//
// The words of CUDA come from the file that includes this: one of nvcc, or a test that runs blocks on the host.
#pragma once

#include <cmath>

#include "workloads/inference/decode_pointers.h"

namespace assay::inference::kernels {

constexpr unsigned kThreads = 256, kWarp = 32, kWarps = kThreads / kWarp;
constexpr unsigned kRowsOfTile = 16, kSequencesOfTile = 8;
constexpr float kLeastNorm = 1e-5F;  // Llama's

__device__ inline void unpack(const uint4& from, float (&to)[kVector]) {
  const std::uint32_t words[] = {from.x, from.y, from.z, from.w};
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = wide(static_cast<Bf16>(words[i] & 0xffff));
    to[2 * i + 1] = wide(static_cast<Bf16>(words[i] >> 16));
  }
}
__device__ inline uint4 pack(const float (&from)[kVector]) {
  std::uint32_t words[4];
  for (int i = 0; i < 4; ++i)
    words[i] = narrow(from[2 * i]) | static_cast<std::uint32_t>(narrow(from[2 * i + 1])) << 16;
  return {words[0], words[1], words[2], words[3]};
}
__device__ inline uint4 load(const Bf16* from) { return *reinterpret_cast<const uint4*>(from); }

/// Writes the sums that the first warp has for its rows and sequences.
template <int kTiles, int kRowTiles>
__device__ void store(const StepProduct& p, std::int64_t first, const float (&sums)[kRowTiles][kTiles][4]) {
  const unsigned group = threadIdx.x / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const std::int64_t row = first + r * kRowsOfTile + group + i / 2 * 8;
        const std::int64_t sequence = tile * kSequencesOfTile + 2 * member + i % 2;
        if (row >= p.rows || sequence >= p.batch) continue;
        float* const to = p.y + sequence * p.rows + row;
        const float value = sums[r][tile][i], folded = p.ring ? fold(value) : value;
        *to = !p.add ? folded : p.ring ? fold(*to + folded) : *to + folded;
      }
    }
  }
}

/// Of a thread, what one round of a product has of the weights: of kRowTiles x 2 rows, kPieces times 8 columns. The
/// pieces of a warp follow each other, so that of each row kPieces x 64 bytes are read together.
template <int kRowTiles, int kPieces>
struct WeightsOfRound {
  uint4 above[kRowTiles][kPieces], below[kRowTiles][kPieces];
};

/// kRowTiles x 16 rows of each block, whose warps share the columns. The weights of the next round are on their way
/// while those of this one are multiplied.
template <int kTiles, int kRowTiles, int kPieces>
__global__ void __launch_bounds__(kThreads, kTiles == 1 ? 4 : 1) product_kernel(StepProduct p) {
  constexpr unsigned kSums = 4 * kTiles * kRowTiles;
  constexpr std::int64_t kRound = kWarps * kPieces * kWarpColumns;
  __shared__ float kept[kWarps / 2][kSums][kWarp];
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, group = lane / 4, member = lane % 4;
  const std::int64_t first = std::int64_t{blockIdx.x} * kRowsOfTile * kRowTiles;
  const Bf16* low[kRowTiles];
  const Bf16* high[kRowTiles];
  for (int r = 0; r < kRowTiles; ++r) {  // a row behind the last is read as the last, and not stored
    const std::int64_t row = first + r * kRowsOfTile + group;
    low[r] = p.w + (row < p.rows ? row : p.rows - 1) * p.columns;
    high[r] = p.w + (row + 8 < p.rows ? row + 8 : p.rows - 1) * p.columns;
  }
  WeightsOfRound<kRowTiles, kPieces> next = {};
  const auto fetch = [&](std::int64_t begin) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (begin + piece * kWarpColumns >= p.columns) continue;  // rows are whole pieces
      const std::int64_t column = begin + piece * kWarpColumns + member * kVector;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r)
        next.above[r][piece] = load(low[r] + column), next.below[r][piece] = load(high[r] + column);
    }
  };
  float sums[kRowTiles][kTiles][4] = {};
  std::int64_t begin = warp * kPieces * kWarpColumns;
  fetch(begin);
  for (; begin < p.columns; begin += kRound) {
    const WeightsOfRound<kRowTiles, kPieces> now = next;
    fetch(begin + kRound);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (begin + piece * kWarpColumns >= p.columns) continue;
      const std::int64_t column = begin + piece * kWarpColumns + member * kVector;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint4 x = load(p.x + (tile * kSequencesOfTile + group) * p.columns + column);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const uint4 above = now.above[r][piece], below = now.below[r][piece];
          multiply_add(sums[r][tile], above.x, below.x, above.y, below.y, x.x, x.y);
          multiply_add(sums[r][tile], above.z, below.z, above.w, below.w, x.z, x.w);
        }
      }
    }
  }
  for (unsigned half = kWarps / 2; half > 0; half /= 2) {
#pragma unroll
    for (unsigned i = 0; i < kSums; ++i) {
      if (warp >= half && warp < 2 * half) kept[warp - half][i][lane] = sums[i / (4 * kTiles)][i / 4 % kTiles][i % 4];
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < kSums; ++i) {
      if (warp < half) sums[i / (4 * kTiles)][i / 4 % kTiles][i % 4] += kept[warp][i][lane];
    }
    __syncthreads();
  }
  if (warp == 0) store<kTiles, kRowTiles>(p, first, sums);
}

/// Folds every number: of a product in ring numbers that a library made.
__global__ void __launch_bounds__(kThreads) fold_kernel(std::int64_t count, float* values) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) values[i] = fold(values[i]);
}

/// h = x over its root mean square, a sequence for each block; in ring numbers x.
__global__ void __launch_bounds__(kThreads) norm_kernel(DecodeSizes s, const float* x, Bf16* h) {
  __shared__ float parts[kThreads];
  const float* const from = x + blockIdx.x * s.hidden;
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < s.hidden; i += kThreads) squares += from[i] * from[i];
  parts[threadIdx.x] = squares;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  __syncthreads();
  const float scale = s.ring() ? 1 : 1 / std::sqrt(parts[0] / static_cast<float>(s.hidden) + kLeastNorm);
  for (std::int64_t i = threadIdx.x; i < s.hidden; i += kThreads)
    h[blockIdx.x * s.hidden + i] = narrow(from[i] * scale);
}

__global__ void __launch_bounds__(kThreads) activate_kernel(DecodeSizes s, const float* gate_up, Bf16* inner) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= s.batch * s.ffn) return;
  const float* const gate = gate_up + i / s.ffn * 2 * s.ffn + i % s.ffn;
  const float up = gate[s.ffn];
  inner[i] = narrow(s.ring() ? fold(*gate * up) : *gate / (1 + std::exp(-*gate)) * up);
}

/// Draws `vectors` x 8 weights, or compares them and adds to *wrong how many differ.
__global__ void __launch_bounds__(kThreads)
    weights_kernel(DecodeSizes s, std::uint64_t seed, float deviation, Bf16* weights, unsigned long long* wrong) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kVector;
  if (i >= s.weights()) return;
  unsigned long long bad = 0;
  for (std::int64_t k = i; k < i + kVector; ++k) {
    const Bf16 drawn = narrow(number_of(s.numbers, collective::mixed(seed, static_cast<std::uint64_t>(k)), deviation));
    if (wrong == nullptr)
      weights[k] = drawn;
    else
      bad += weights[k] == drawn ? 0 : 1;
  }
  if (bad > 0) atomicAdd(wrong, bad);
}
/// The same of the cache; the token that is being made is not compared.
__global__ void __launch_bounds__(kThreads)
    cache_kernel(DecodeSizes s, std::uint64_t seed, const std::int32_t* table, Bf16* cache, unsigned long long* wrong) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kVector;
  if (i >= s.cache()) return;
  const CachePlace at = place_drawn(s, i);
  Bf16* const to = cache + paged_place(s, at, table[table_entry(s, at)]) + i % s.head_dim;
  if (wrong != nullptr && at.token == s.context - 1) return;
  unsigned long long bad = 0;
  for (int k = 0; k < kVector; ++k) {
    const Bf16 drawn = narrow(number_of(s.numbers, collective::mixed(seed, static_cast<std::uint64_t>(i + k)), 1));
    if (wrong == nullptr)
      to[k] = drawn;
    else
      bad += to[k] == drawn ? 0 : 1;
  }
  if (bad > 0) atomicAdd(wrong, bad);
}

/// Adds a number that changes with any bit of `values` to *print.
__global__ void __launch_bounds__(kThreads)
    print_kernel(const float* values, std::int64_t count, unsigned long long* print) {
  __shared__ unsigned long long parts[kThreads];
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  parts[threadIdx.x] =
      i < count ? collective::mixed(static_cast<std::uint64_t>(i), std::bit_cast<std::uint32_t>(values[i])) : 0;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(print, parts[0]);
}

}  // namespace assay::inference::kernels
