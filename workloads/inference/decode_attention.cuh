// decode_attention: attention of a step on a GPU, in chunks of the cache, and their join. Keys are rows of a tile as
// weights are (decode_kernels), the group's query heads its columns; values are the second factor, with scores in BF16.
//
// The words of CUDA come from the file that includes this, as for decode_kernels.
#pragma once

#include "workloads/inference/decode_kernels.cuh"

namespace assay::inference::kernels {

constexpr int kHeadsAtOnce = 8;  // of one group, in one pass over a chunk's keys
constexpr int kLoads = 4;        // of a thread and row, on their way from memory together
constexpr int kBlockWidth = 64;  // numbers of a head whose sums a warp has at a time
constexpr int kPad = 8;          // numbers that keep rows of shared memory on banks of their own
static_assert(kPageTokens == kRowsOfTile && kHeadsAtOnce == kSequencesOfTile && kChunkTokens == kWarps * kPageTokens);
static_assert(kMostHeadDim <= kThreads);

/// What the warps of a block share: queries as BF16, eight numbers each, scores, and the sums of each warp.
struct Shared {
  uint4 queries[kHeadsAtOnce][kMostHeadDim / kVector + kPad / 2];
  float scores[kHeadsAtOnce][kChunkTokens + kPad];
  float sums[kWarps][kHeadsAtOnce][kBlockWidth + kPad];
};

/// Memory of attention.
struct Attention {
  DecodeSizes sizes;
  std::int64_t layer = 0;
  const std::int32_t* table = nullptr;
  const float* qkv = nullptr;
  Bf16* cache = nullptr;
  float *largest = nullptr, *sums = nullptr, *parts = nullptr;  ///< by part_place(); parts have head_dim numbers each
};

/// Sum over the lanes of a warp, in one order; the same in all of them.
__device__ inline float over_lanes(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffU, value, distance);
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
  all = over_lanes(all);
  if (lane != 0) return;
  *largest = most;
  *sum = all;
}

/// One chunk of one sequence and head of keys: blockIdx x, z and y. Each warp has a page of it.
struct Chunk {
  const Attention& a;
  const DecodeSizes& s;
  std::int64_t first, tokens, part;
  unsigned warp, group, member;  ///< of the thread: a group has four

  __device__ explicit Chunk(const Attention& of)
      : a(of),
        s(of.sizes),
        first(blockIdx.x * kChunkTokens),
        tokens(s.context - first < kChunkTokens ? s.context - first : kChunkTokens),
        part(part_place(s, blockIdx.z, blockIdx.y, blockIdx.x)),
        warp(threadIdx.x / kWarp),
        group(threadIdx.x % kWarp / 4),
        member(threadIdx.x % 4) {}
  __device__ bool is_last() const { return first + tokens == s.context; }
  /// Contexts are whole pages: a warp has one, or nothing.
  __device__ bool has_page() const { return warp * kPageTokens < tokens; }
  __device__ const float* own() const { return a.qkv + blockIdx.z * s.qkv(); }
  /// The keys or values of the first token of a page of the chunk, by the page table; those of the others follow.
  __device__ Bf16* page(std::int64_t number, bool values) const {
    const CachePlace at{.layer = a.layer,
                        .sequence = blockIdx.z,
                        .kv_head = blockIdx.y,
                        .values = values,
                        .token = first + number * kPageTokens};
    return a.cache + paged_place(s, at, a.table[table_entry(s, at)]);
  }

  /// The token that is made in this step enters the cache.
  __device__ void enter() const {
    const float* const key = own() + s.q() + blockIdx.y * s.head_dim;
    const std::int64_t last = tokens / kPageTokens - 1, place = (kPageTokens - 1) * s.head_dim;
    for (std::int64_t d = threadIdx.x; d < s.head_dim; d += kThreads) {
      page(last, false)[place + d] = narrow(key[d]);
      page(last, true)[place + d] = narrow(key[s.kv() + d]);
    }
  }
  /// The queries of `heads` heads from `turn` of the group on; zeros behind them.
  __device__ void take_queries(std::int64_t turn, int heads, Shared& shared) const {
    const unsigned each = static_cast<unsigned>(s.head_dim) / kVector;
    const float* const from = own() + (blockIdx.y * s.group() + turn) * s.head_dim;
    for (unsigned i = threadIdx.x; i < kHeadsAtOnce * each; i += kThreads) {
      float numbers[kVector] = {};
      for (int k = 0; k < kVector && i < static_cast<unsigned>(heads) * each; ++k) numbers[k] = from[i * kVector + k];
      shared.queries[i / each][i % each] = pack(numbers);
    }
  }
  /// Scores of the page's tokens for all of these heads.
  __device__ void score(Shared& shared) const {
    const float scale = s.ring() ? 1 : 1 / std::sqrt(static_cast<float>(s.head_dim));
    const int width = static_cast<int>(s.head_dim);
    const Bf16* const low = page(warp, false) + static_cast<int>(group) * width;
    const Bf16* const high = low + 8 * width;
    float sums[4] = {};
    for (int begin = 0; begin < width; begin += kLoads * kWarpColumns) {
      uint4 above[kLoads] = {}, below[kLoads] = {};
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int d = begin + i * kWarpColumns + static_cast<int>(member) * kVector;
        if (d < width) above[i] = load(low + d), below[i] = load(high + d);
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int d = begin + i * kWarpColumns + static_cast<int>(member) * kVector;
        uint4 x = {};
        if (d < width) x = shared.queries[group][d / kVector];
        multiply_add(sums, above[i].x, below[i].x, above[i].y, below[i].y, x.x, x.y);
        multiply_add(sums, above[i].z, below[i].z, above[i].w, below[i].w, x.z, x.w);
      }
    }
    for (unsigned i = 0; i < 4; ++i) {
      const std::int64_t token = warp * kPageTokens + group + i / 2 * 8;
      shared.scores[2 * member + i % 2][token] = s.ring() ? fold(sums[i]) : sums[i] * scale;
    }
  }
  /// Scores times values of the page's tokens: kBlockWidth numbers of the head from `begin` on. Of 16 tokens, which are
  /// the columns of the instruction, thread t of a group has 4t to 4t + 3; of the numbers, group g has 8g to 8g + 7. Of
  /// the sums, number 8c + i is at place 8i + c.
  __device__ void blend(std::int64_t begin, int heads, Shared& shared) const {
    const std::int64_t d = begin + group * kVector;
    const Bf16* const values = page(warp, true) + 4 * member * s.head_dim + d;
    std::uint32_t words[4][4] = {};
#pragma unroll
    for (int token = 0; token < 4; ++token) {
      uint4 v = {};
      if (d < s.head_dim) v = load(values + token * s.head_dim);
      words[token][0] = v.x, words[token][1] = v.y, words[token][2] = v.z, words[token][3] = v.w;
    }
    unsigned p[2] = {};
    for (int i = 0; i < 2 && static_cast<int>(group) < heads; ++i) {
      const float* const score = shared.scores[group] + warp * kPageTokens + 4 * member + 2 * i;
      p[i] = narrow(score[0]) | static_cast<std::uint32_t>(narrow(score[1])) << 16;
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const auto pair = [&](int token) {  // number i of this token and of the next
        const std::uint32_t one = words[token][i / 2], other = words[token + 1][i / 2];
        return i % 2 == 0 ? (one & 0xffff) | other << 16 : one >> 16 | (other & 0xffff0000);
      };
      float sums[4] = {};
      multiply_add(sums, p[0], 0, p[1], 0, pair(0), pair(2));
      float* const to = shared.sums[warp][group] + i * kVector + 2 * member;
      to[0] = sums[0];
      to[1] = sums[1];
    }
  }
};

/// Three blocks fit on a multiprocessor: their loads hide each other's waits.
__global__ void __launch_bounds__(kThreads, 3) attend_kernel(Attention a) {
  __shared__ Shared shared;
  const Chunk chunk(a);
  const DecodeSizes& s = a.sizes;
  const std::int64_t group = s.group(), pages = chunk.tokens / kPageTokens;
  if (chunk.is_last()) chunk.enter();
  for (std::int64_t turn = 0; turn < group; turn += kHeadsAtOnce) {
    const int heads = group - turn < kHeadsAtOnce ? static_cast<int>(group - turn) : kHeadsAtOnce;
    const std::int64_t part = chunk.part + turn;
    chunk.take_queries(turn, heads, shared);
    __syncthreads();
    if (chunk.has_page()) chunk.score(shared);
    __syncthreads();
    const int mine = static_cast<int>(chunk.warp);
    if (mine < heads && !s.ring())
      soften(shared.scores[mine], chunk.tokens, a.largest + part + mine, a.sums + part + mine);
    __syncthreads();
    for (std::int64_t begin = 0; begin < s.head_dim; begin += kBlockWidth) {
      if (chunk.has_page()) chunk.blend(begin, heads, shared);
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < heads * kBlockWidth; i += kThreads) {
        const int h = i / kBlockWidth, place = i % kBlockWidth, d = place % kVector * kVector + place / kVector;
        if (begin + d >= s.head_dim) continue;
        float sum = 0;
        for (int page = 0; page < pages; ++page) sum += shared.sums[page][h][place];
        a.parts[(part + h) * s.head_dim + begin + d] = s.ring() ? fold(sum) : sum;
      }
      __syncthreads();
    }
  }
}

/// The chunks of one query head, blockIdx.x, of one sequence, blockIdx.y, put together: their weights by one thread
/// each, 256 at a time, then every number of the head.
__global__ void __launch_bounds__(kThreads) join_kernel(Attention a, Bf16* attended) {
  __shared__ float largest[kThreads], weights[kThreads], shares[kThreads];
  const DecodeSizes& s = a.sizes;
  const std::int64_t sequence = blockIdx.y, head = blockIdx.x, d = threadIdx.x, group = s.group(), chunks = s.chunks();
  const std::int64_t part = part_place(s, sequence, head / group, 0) + head % group;  // of the first chunk
  float most = -INFINITY;
  for (std::int64_t chunk = threadIdx.x; chunk < chunks && !s.ring(); chunk += kThreads)
    most = fmaxf(most, a.largest[part + chunk * group]);
  largest[threadIdx.x] = most;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) largest[threadIdx.x] = fmaxf(largest[threadIdx.x], largest[threadIdx.x + half]);
  }
  float sum = 0, value = 0;
  for (std::int64_t first = 0; first < chunks; first += kThreads) {
    __syncthreads();
    const std::int64_t mine = first + threadIdx.x, count = chunks - first < kThreads ? chunks - first : kThreads;
    if (mine < chunks) {
      const std::int64_t at = part + mine * group;
      weights[threadIdx.x] = s.ring() ? 1 : std::exp(a.largest[at] - largest[0]);
      shares[threadIdx.x] = s.ring() ? 0 : a.sums[at] * weights[threadIdx.x];
    }
    __syncthreads();
    const float* const numbers = a.parts + (part + first * group) * s.head_dim + (d < s.head_dim ? d : 0);
#pragma unroll 8
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
      sum += shares[chunk];
      value += numbers[chunk * group * s.head_dim] * weights[chunk];
    }
  }
  if (d < s.head_dim) attended[sequence * s.q() + head * s.head_dim + d] = narrow(s.ring() ? fold(value) : value / sum);
}

}  // namespace assay::inference::kernels
