// gemm_kernels: operands made on the device, sums of the results, and products of whole numbers checked there. One text
// for all GPUs, as memory_kernels.cuh; the stride of a loop over all threads is a parameter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/cuda/gemm_format.h"
#include "probes/cuda/kernel_words.h"
#include "probes/cuda/mixed.h"
#include "probes/cuda/quantise.h"
#include "probes/cuda/whole.h"

namespace assay::cuda::kernels {

constexpr unsigned kGemmThreads = 256;

/// The index of this thread among those of all blocks.
__device__ inline std::uint64_t gemm_index() {
  return std::uint64_t{words::block_index()} * kGemmThreads + words::thread_index();
}

/// A standard normal number (Box & Muller 1958); the smallest uniform number keeps it within 6.7.
__device__ inline float normal(std::uint64_t seed, std::uint64_t index) {
  constexpr float kUnit = 0x1p-32F;
  const std::uint64_t bits = mixed(seed, index);
  const float first = (static_cast<float>(bits >> 32) + 0.5F) * kUnit;
  const float second = static_cast<float>(bits & 0xffffffffU) * kUnit;
  return words::square_root(-2.0F * words::logarithm(first < 1.0F ? first : 1.0F)) * words::cosine_of(second);
}

__device__ inline float element(Pattern pattern, std::uint64_t seed, std::uint64_t index) {
  return pattern == Pattern::constant ? 1.0F : normal(seed, index);
}

/// All 53 bits of a double vary: the second number fills the bits below the first.
__device__ inline double wide_element(Pattern pattern, std::uint64_t seed, std::uint64_t index) {
  constexpr double kBelow = 0x1p-24;
  if (pattern == Pattern::constant) return 1.0;
  return normal(seed, index) + kBelow * normal(~seed, index);
}

/// Element `index` of `target`, whose format has 4 bytes or fewer and is none of halves of a byte.
__device__ inline void store(std::byte* target, Format format, std::uint64_t index, float value) {
  const auto put = [&](MiniFloat mini) {
    if (mini.bits() == 16)
      reinterpret_cast<std::uint16_t*>(target)[index] = static_cast<std::uint16_t>(encode(mini, value));
    else
      reinterpret_cast<std::uint8_t*>(target)[index] = static_cast<std::uint8_t>(encode(mini, value));
  };
  switch (format) {
    case Format::fp32:
      reinterpret_cast<float*>(target)[index] = value;
      break;
    case Format::tf32:
      reinterpret_cast<float*>(target)[index] = round_tf32(value);
      break;
    case Format::fp16:
      return put(kFp16);
    case Format::bf16:
      return put(kBf16);
    case Format::e4m3:
      return put(kE4m3);
    case Format::e5m2:
      return put(kE5m2);
    case Format::e4m3_fnuz:
      return put(kE4m3Fnuz);
    case Format::e5m2_fnuz:
      return put(kE5m2Fnuz);
    default:
      break;
  }
}

extern "C" __global__ void assay_gemm_fill(std::byte* target, Format format, std::uint64_t count, std::uint64_t seed,
                                           Pattern pattern, std::uint64_t stride) {
  for (std::uint64_t i = gemm_index(); i < count; i += stride) {
    if (format == Format::fp64) {
      reinterpret_cast<double*>(target)[i] = wide_element(pattern, seed, i);
    } else if (format == Format::int8) {
      reinterpret_cast<std::int8_t*>(target)[i] = encode_int8(element(pattern, seed, i));
    } else {
      store(target, format, i, element(pattern, seed, i));
    }
  }
}

/// Adds up mixed words of each result: no order of the additions changes a sum, every word's value and place does.
/// `blocks` of the grid, which are `stride` threads, read one result.
extern "C" __global__ void assay_gemm_sum(const std::byte* first, std::uint64_t apart, std::uint64_t count,
                                          words::Word* sums, unsigned blocks, std::uint64_t stride) {
  const unsigned result = words::block_index() / blocks;
  const auto* const data = reinterpret_cast<const std::uint32_t*>(first + result * apart);
  words::Word sum[1] = {0};
  for (std::uint64_t i = gemm_index() - result * stride; i < count; i += stride) sum[0] += mixed(data[i], i);
  words::add_over_block<kGemmThreads>(sum);
  if (words::thread_index() == 0) (void)words::add_atomically(sums + result, sum[0]);
}

extern "C" __global__ void assay_whole_fill(std::byte* target, Format format, WholeNumbers numbers, WholeStream matrix,
                                            std::uint64_t count, std::uint64_t stride) {
  for (std::uint64_t i = gemm_index(); i < count; i += stride) {
    const int value = whole_element(numbers, matrix, i / numbers.k, i % numbers.k);
    if (format == Format::fp64) {
      reinterpret_cast<double*>(target)[i] = value;
    } else if (format == Format::int8) {
      reinterpret_cast<std::int8_t*>(target)[i] = static_cast<std::int8_t>(value);
    } else {
      store(target, format, i, static_cast<float>(value));
    }
  }
}

/// Two elements of e2m1 to a byte, the first in its low half. k is even.
extern "C" __global__ void assay_whole_halves(std::byte* target, WholeNumbers numbers, WholeStream matrix,
                                              std::uint64_t count, std::uint64_t stride) {
  for (std::uint64_t i = gemm_index(); i < count; i += stride) {
    const std::uint64_t line = 2 * i / numbers.k, term = 2 * i % numbers.k;
    const auto code = [&](std::uint64_t at) {
      return encode(kE2m1, static_cast<float>(whole_element(numbers, matrix, line, at)));
    };
    target[i] = std::byte{static_cast<std::uint8_t>(code(term) | code(term + 1) << 4)};
  }
}

/// Element `index` of a result, as a double; far beyond all right results where its code is not a number.
__device__ inline double loaded(const std::byte* d, Format format, std::uint64_t index) {
  constexpr double kNone = 0x1p100;
  switch (format) {
    case Format::fp64:
      return reinterpret_cast<const double*>(d)[index];
    case Format::fp32:
      return reinterpret_cast<const float*>(d)[index];
    case Format::int32:
      return reinterpret_cast<const std::int32_t*>(d)[index];
    case Format::bf16:
      return __builtin_bit_cast(float, std::uint32_t{reinterpret_cast<const std::uint16_t*>(d)[index]} << 16U);
    case Format::fp16: {
      const std::uint16_t code = reinterpret_cast<const std::uint16_t*>(d)[index];
      return (code & 0x7fffU) > kFp16.largest ? kNone : static_cast<double>(decode(kFp16, code));
    }
    default:
      return kNone;
  }
}

extern "C" __global__ void assay_whole_terms(WholeNumbers numbers, std::uint64_t* terms, std::uint64_t stride) {
  for (std::uint64_t i = gemm_index(); i < numbers.k; i += stride) terms[i] = weighted_term(numbers, i);
}

extern "C" __global__ void assay_whole_check(const std::byte* d, Format format, double factor, WholeNumbers numbers,
                                             const std::uint64_t* terms, words::Word* wrong, std::uint64_t stride) {
  for (std::uint64_t line = gemm_index(); line < numbers.m; line += stride) {
    const auto result = [&](std::uint64_t column) { return factor * loaded(d, format, column * numbers.m + line); };
    if (!whole_line_is_right(numbers, line, terms, result)) (void)words::add_atomically(wrong, 1);
  }
}

}  // namespace assay::cuda::kernels
