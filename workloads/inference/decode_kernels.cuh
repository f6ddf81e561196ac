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
constexpr int kHeadsAtOnce = 4;      // of one group, in one pass over a chunk's keys
constexpr int kTokensAtOnce = 4;     // of a thread, on their way from memory together

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
__global__ void __launch_bounds__(kThreads) product_kernel(StepProduct p) {
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

/// Memory of attention.
struct Attention {
  DecodeSizes sizes;
  std::int64_t layer = 0;
  const std::int32_t* table = nullptr;
  const float* qkv = nullptr;
  Bf16* cache = nullptr;
  float *largest = nullptr, *sums = nullptr, *parts = nullptr;  ///< by part_place(); parts have head_dim numbers each
};

/// Sum over the lanes whose numbers differ below `lanes`, a power of two, in one order; the same in all of them.
__device__ inline float over_lanes(float value, unsigned lanes) {
  for (unsigned distance = lanes / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffU, value, static_cast<int>(distance));
  return value;
}

/// The softmax of one head's scores by one warp; a later join needs largest and sum.
__device__ inline void soften(float* scores, std::int64_t tokens, float* largest, float* sum) {
  const unsigned lane = threadIdx.x % kWarp;
  float most = -INFINITY, all = 0;
  for (std::int64_t t = lane; t < tokens; t += kWarp) most = fmaxf(most, scores[t]);
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, distance));
  for (std::int64_t t = lane; t < tokens; t += kWarp) all += scores[t] = std::exp(scores[t] - most);
  all = over_lanes(all, kWarp);
  if (lane != 0) return;
  *largest = most;
  *sum = all;
}

/// One chunk of one sequence and head of keys: blockIdx x, z and y. head_dim / 8 lanes have a token; it is 16, 32, 64,
/// 128 or 256, and a chunk is whole pages, so that the lanes of a warp always have tokens together.
struct Chunk {
  const Attention& a;
  const DecodeSizes& s;
  std::int64_t first, tokens;
  unsigned lanes, lane, member, members;

  __device__ explicit Chunk(const Attention& of) : a(of), s(of.sizes), first(blockIdx.x * kChunkTokens) {
    tokens = is_last() ? s.context - first : kChunkTokens;
    lanes = static_cast<unsigned>(s.head_dim / kVector);
    lane = threadIdx.x % lanes;
    member = threadIdx.x / lanes;
    members = kThreads / lanes;
  }
  __device__ bool is_last() const { return s.context - first <= kChunkTokens; }
  __device__ const float* own() const { return a.qkv + blockIdx.z * s.qkv(); }
  /// The key or value of a token of the chunk, by the page table.
  __device__ Bf16* numbers(std::int64_t token, bool values) const {
    const CachePlace at{
        .layer = a.layer, .sequence = blockIdx.z, .kv_head = blockIdx.y, .values = values, .token = first + token};
    return a.cache + paged_place(s, at, a.table[table_entry(s, at)]);
  }
  __device__ std::int64_t part(std::int64_t head) const { return part_place(s, blockIdx.z, head, blockIdx.x); }

  /// The token that is made in this step enters the cache.
  __device__ void enter() const {
    const float* const key = own() + s.q() + blockIdx.y * s.head_dim;
    for (std::int64_t d = threadIdx.x; d < s.head_dim; d += kThreads) {
      numbers(tokens - 1, false)[d] = narrow(key[d]);
      numbers(tokens - 1, true)[d] = narrow(key[s.kv() + d]);
    }
  }
  /// Runs work(token, its 8 numbers) for the tokens of this thread, of which kTokensAtOnce are loaded before the first
  /// is worked on.
  template <class Work>
  __device__ void each_token(bool values, const Work& work) const {
    for (std::int64_t begin = member; begin < tokens; begin += kTokensAtOnce * members) {
      uint4 loaded[kTokensAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kTokensAtOnce; ++i) {
        const std::int64_t t = begin + i * members;
        if (t < tokens) loaded[i] = load(numbers(t, values) + lane * kVector);
      }
#pragma unroll
      for (int i = 0; i < kTokensAtOnce; ++i) {
        const std::int64_t t = begin + i * members;
        float each[kVector];
        unpack(loaded[i], each);
        if (t < tokens) work(t, each);
      }
    }
  }
  /// Scores of `heads` heads from `head` on; 0 for others of the turn.
  __device__ void score(std::int64_t head, int heads, float (&scores)[kHeadsAtOnce][kChunkTokens]) const {
    const float scale = s.ring() ? 1 : 1 / std::sqrt(static_cast<float>(s.head_dim));
    float query[kHeadsAtOnce][kVector] = {};
    for (int h = 0; h < kHeadsAtOnce; ++h) {
      for (int i = 0; i < kVector && h < heads; ++i) query[h][i] = own()[(head + h) * s.head_dim + lane * kVector + i];
    }
    each_token(false, [&](std::int64_t t, const float(&keys)[kVector]) {
      for (int h = 0; h < kHeadsAtOnce; ++h) {
        float sum = 0;
        for (int i = 0; i < kVector; ++i) sum += query[h][i] * keys[i];
        sum = over_lanes(sum, lanes);
        if (lane == 0) scores[h][t] = s.ring() ? fold(sum) : sum * scale;
      }
    });
  }
  /// Values times scores, summed over the tokens of each warp.
  __device__ void blend(const float (&scores)[kHeadsAtOnce][kChunkTokens],
                        float (&blended)[kWarps][kHeadsAtOnce][kMostHeadDim]) const {
    float sums[kHeadsAtOnce][kVector] = {};
    each_token(true, [&](std::int64_t t, const float(&values)[kVector]) {
      for (int h = 0; h < kHeadsAtOnce; ++h) {
        for (int i = 0; i < kVector; ++i) sums[h][i] += scores[h][t] * values[i];
      }
    });
    for (int h = 0; h < kHeadsAtOnce; ++h) {
      for (int i = 0; i < kVector; ++i) {
        for (unsigned distance = kWarp / 2; distance >= lanes; distance /= 2)
          sums[h][i] += __shfl_xor_sync(0xffffffffU, sums[h][i], static_cast<int>(distance));
        if (threadIdx.x % kWarp < lanes) blended[threadIdx.x / kWarp][h][lane * kVector + i] = sums[h][i];
      }
    }
  }
};

__global__ void __launch_bounds__(kThreads) attend_kernel(Attention a) {
  __shared__ float scores[kHeadsAtOnce][kChunkTokens];
  __shared__ float blended[kWarps][kHeadsAtOnce][kMostHeadDim];
  const Chunk chunk(a);
  const DecodeSizes& s = a.sizes;
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  if (chunk.is_last()) chunk.enter();
  __syncthreads();
  for (std::int64_t turn = 0; turn < s.group(); turn += kHeadsAtOnce) {
    const std::int64_t left = s.group() - turn, head = blockIdx.y * s.group() + turn;
    const int heads = left < kHeadsAtOnce ? static_cast<int>(left) : kHeadsAtOnce;
    chunk.score(head, heads, scores);
    __syncthreads();
    if (warp < heads && !s.ring())
      soften(scores[warp], chunk.tokens, a.largest + chunk.part(head + warp), a.sums + chunk.part(head + warp));
    __syncthreads();
    chunk.blend(scores, blended);
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < heads * s.head_dim; i += kThreads) {
      const std::int64_t h = i / s.head_dim, d = i % s.head_dim;
      float sum = 0;
      for (unsigned w = 0; w < kWarps; ++w) sum += blended[w][h][d];
      a.parts[chunk.part(head + h) * s.head_dim + d] = s.ring() ? fold(sum) : sum;
    }
    __syncthreads();
  }
}

/// The chunks of one query head, blockIdx.x, of one sequence, blockIdx.y, put together: their weights by one thread
/// each, 256 at a time, then every number of the head.
__global__ void __launch_bounds__(kThreads) join_kernel(Attention a, Bf16* attended) {
  __shared__ float shared[kThreads], weights[kThreads], shares[kThreads];
  const DecodeSizes& s = a.sizes;
  const std::int64_t sequence = blockIdx.y, head = blockIdx.x, d = threadIdx.x;
  float most = -INFINITY;
  for (std::int64_t chunk = threadIdx.x; chunk < s.chunks() && !s.ring(); chunk += kThreads)
    most = fmaxf(most, a.largest[part_place(s, sequence, head, chunk)]);
  shared[threadIdx.x] = most;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  float sum = 0, value = 0;
  for (std::int64_t first = 0; first < s.chunks(); first += kThreads) {
    __syncthreads();
    const std::int64_t mine = first + threadIdx.x,
                       count = s.chunks() - first < kThreads ? s.chunks() - first : kThreads;
    if (mine < s.chunks()) {
      const std::int64_t at = part_place(s, sequence, head, mine);
      weights[threadIdx.x] = s.ring() ? 1 : std::exp(a.largest[at] - shared[0]);
      shares[threadIdx.x] = s.ring() ? 0 : a.sums[at] * weights[threadIdx.x];
    }
    __syncthreads();
#pragma unroll 8
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
      sum += shares[chunk];
      if (d < s.head_dim)
        value += a.parts[part_place(s, sequence, head, first + chunk) * s.head_dim + d] * weights[chunk];
    }
  }
  if (d < s.head_dim) attended[sequence * s.q() + head * s.head_dim + d] = narrow(s.ring() ? fold(value) : value / sum);
}
static_assert(kMostHeadDim <= kThreads);

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
