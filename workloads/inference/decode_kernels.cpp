// decode_kernels: vectors of 16 lanes, compiled for several instruction sets. Sums have one order: lanes, then a tree.
#include "workloads/inference/decode_kernels.h"

#include <algorithm>
#include <cstring>

namespace assay::inference {
namespace {

typedef float Lanes __attribute__((vector_size(64)));
typedef std::uint32_t Words __attribute__((vector_size(64)));
typedef std::uint16_t Halves __attribute__((vector_size(32)));
typedef std::uint64_t Longs __attribute__((vector_size(64)));
static_assert(sizeof(Lanes) == kLanes * sizeof(float));

constexpr std::size_t kTokensInCache = 64;  // of 128 BF16 numbers each: 16 KiB, half of a first-level cache

[[gnu::always_inline]] inline void widen(const Bf16* from, Lanes& to) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words words = __builtin_convertvector(halves, Words) << 16;
  std::memcpy(&to, &words, sizeof to);
}

[[gnu::always_inline]] inline void load(const float* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }

[[gnu::always_inline]] inline float sum_of(const Lanes& lanes) {
  float parts[kLanes];
  std::memcpy(parts, &lanes, sizeof parts);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) parts[i] += parts[i + width];
  }
  return parts[0];
}

/// One row and `tile` vectors.
template <std::size_t tile>
[[gnu::always_inline]] inline void row_tile(const Bf16* w, std::size_t n, const float* x, float* y,
                                            std::size_t stride) {
  Lanes sums[tile] = {};
  for (std::size_t c = 0; c < n; c += kLanes) {
    Lanes weights;
    widen(w + c, weights);
    for (std::size_t b = 0; b < tile; ++b) {
      Lanes values;
      load(x + b * n + c, values);
      sums[b] += weights * values;
    }
  }
  for (std::size_t b = 0; b < tile; ++b) y[b * stride] = sum_of(sums[b]);
}

[[gnu::always_inline]] inline void rows_body(const Bf16* w, std::size_t rows, std::size_t n, const float* x,
                                             std::size_t batch, float* y, std::size_t stride) {
  for (std::size_t r = 0; r < rows; ++r, w += n) {
    std::size_t b = 0;
    for (; b + 4 <= batch; b += 4) row_tile<4>(w, n, x + b * n, y + b * stride + r, stride);
    for (; b < batch; ++b) row_tile<1>(w, n, x + b * n, y + b * stride + r, stride);
  }
}

[[gnu::always_inline]] inline void blend_body(const Bf16* v, std::size_t tokens, std::size_t n, const float* s,
                                              std::size_t heads, float* out) {
  std::fill_n(out, heads * n, 0.0F);
  for (std::size_t first = 0; first < tokens; first += kTokensInCache) {
    const std::size_t last = std::min(tokens, first + kTokensInCache);
    for (std::size_t g = 0; g < heads; ++g) {
      for (std::size_t d = 0; d < n; d += kLanes) {
        Lanes sum;
        load(out + g * n + d, sum);
        for (std::size_t t = first; t < last; ++t) {
          Lanes values;
          widen(v + t * n + d, values);
          sum += values * s[g * tokens + t];
        }
        std::memcpy(out + g * n + d, &sum, sizeof sum);
      }
    }
  }
}

[[gnu::always_inline]] inline std::uint64_t read_body(const std::uint64_t* at, std::size_t words) {
  constexpr std::size_t kWords = sizeof(Longs) / sizeof(std::uint64_t), kAtOnce = 4;
  Longs sums[kAtOnce] = {};
  std::size_t i = 0;
  for (; i + kAtOnce * kWords <= words; i += kAtOnce * kWords) {
    for (std::size_t j = 0; j < kAtOnce; ++j) {
      Longs more;
      std::memcpy(&more, at + i + j * kWords, sizeof more);
      sums[j] += more;
    }
  }
  std::uint64_t sum = 0;
  for (const Longs& one : sums) {
    for (std::size_t lane = 0; lane < kWords; ++lane) sum += one[lane];
  }
  for (; i < words; ++i) sum += at[i];
  return sum;
}

struct Plain {
  static constexpr std::string_view kIsa = "compiler";
  static void rows(const Bf16* w, std::size_t r, std::size_t n, const float* x, std::size_t b, float* y,
                   std::size_t stride) {
    rows_body(w, r, n, x, b, y, stride);
  }
  static void blend(const Bf16* v, std::size_t t, std::size_t n, const float* s, std::size_t g, float* out) {
    blend_body(v, t, n, s, g, out);
  }
  static std::uint64_t read(const std::uint64_t* at, std::size_t words) { return read_body(at, words); }
};

#if defined(__x86_64__)
struct Avx2 {
  static constexpr std::string_view kIsa = "avx2";
  [[gnu::target("avx2,fma")]] static void rows(const Bf16* w, std::size_t r, std::size_t n, const float* x,
                                               std::size_t b, float* y, std::size_t stride) {
    rows_body(w, r, n, x, b, y, stride);
  }
  [[gnu::target("avx2,fma")]] static void blend(const Bf16* v, std::size_t t, std::size_t n, const float* s,
                                                std::size_t g, float* out) {
    blend_body(v, t, n, s, g, out);
  }
  [[gnu::target("avx2,fma")]] static std::uint64_t read(const std::uint64_t* at, std::size_t words) {
    return read_body(at, words);
  }
};

struct Avx512 {
  static constexpr std::string_view kIsa = "avx512f";
  [[gnu::target("avx512f,fma")]] static void rows(const Bf16* w, std::size_t r, std::size_t n, const float* x,
                                                  std::size_t b, float* y, std::size_t stride) {
    rows_body(w, r, n, x, b, y, stride);
  }
  [[gnu::target("avx512f,fma")]] static void blend(const Bf16* v, std::size_t t, std::size_t n, const float* s,
                                                   std::size_t g, float* out) {
    blend_body(v, t, n, s, g, out);
  }
  [[gnu::target("avx512f,fma")]] static std::uint64_t read(const std::uint64_t* at, std::size_t words) {
    return read_body(at, words);
  }
};
#endif

template <class Code>
constexpr DecodeCode code_of() {
  return {.isa = Code::kIsa, .rows = Code::rows, .blend = Code::blend, .read = Code::read};
}

}  // namespace

DecodeCode plain_decode_code() { return code_of<Plain>(); }

DecodeCode decode_code() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")) return code_of<Avx512>();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return code_of<Avx2>();
#endif
  return code_of<Plain>();
}

}  // namespace assay::inference
