// decode_kernels: products of matrices in BF16 with a few vectors, read once from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "workloads/inference/decode_numbers.h"

namespace assay::inference {

/// Widths of rows are multiples of this.
inline constexpr std::size_t kLanes = 16;

/// One implementation. The same inputs give the same bits, however rows are shared out among threads.
struct DecodeCode {
  std::string_view isa;  ///< "avx512f", "avx2" or "compiler"
  /// y[b * stride + r] = sum of w[r * n + c] * x[b * n + c] over c, for `rows` rows and `batch` vectors; a row is read
  /// from memory once for all vectors. `n` is a multiple of kLanes.
  void (*rows)(const Bf16* w, std::size_t rows, std::size_t n, const float* x, std::size_t batch, float* y,
               std::size_t stride);
  /// out[g * n + d] = sum of s[g * tokens + t] * v[t * n + d] over t, for `heads` heads. `n` is a multiple of kLanes.
  void (*blend)(const Bf16* v, std::size_t tokens, std::size_t n, const float* s, std::size_t heads, float* out);
  /// Reads `words` words of 8 B; their sum modulo 2^64.
  std::uint64_t (*read)(const std::uint64_t* at, std::size_t words);
};

/// The widest that this processor has.
DecodeCode decode_code();
/// Plain loops, for comparison.
DecodeCode plain_decode_code();

}  // namespace assay::inference
