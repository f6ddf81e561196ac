// whole_kernels: one thread for each element made, each term summed, each line checked.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "probes/cuda/quantise.h"
#include "probes/cuda/whole_kernels.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 128;
constexpr unsigned kMostBlocks = 4096;  // loops take the rest

__device__ std::size_t first_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t index_step() { return std::size_t{gridDim.x} * blockDim.x; }

__device__ void store(std::byte* target, Format format, std::size_t index, int value) {
  const auto number = static_cast<float>(value);
  switch (format) {
    case Format::fp64:
      reinterpret_cast<double*>(target)[index] = value;
      break;
    case Format::fp32:
    case Format::tf32:
      reinterpret_cast<float*>(target)[index] = number;
      break;
    case Format::fp16:
      reinterpret_cast<std::uint16_t*>(target)[index] = static_cast<std::uint16_t>(encode(kFp16, number));
      break;
    case Format::bf16:
      reinterpret_cast<std::uint16_t*>(target)[index] = static_cast<std::uint16_t>(encode(kBf16, number));
      break;
    case Format::e4m3:
      reinterpret_cast<std::uint8_t*>(target)[index] = static_cast<std::uint8_t>(encode(kE4m3, number));
      break;
    case Format::e5m2:
      reinterpret_cast<std::uint8_t*>(target)[index] = static_cast<std::uint8_t>(encode(kE5m2, number));
      break;
    case Format::int8:
      reinterpret_cast<std::int8_t*>(target)[index] = static_cast<std::int8_t>(value);
      break;
    default:
      break;
  }
}

__global__ void fill(std::byte* target, Format format, WholeNumbers numbers, WholeStream matrix, std::size_t lines) {
  for (std::size_t i = first_index(); i < lines * numbers.k; i += index_step()) {
    store(target, format, i, whole_element(numbers, matrix, i / numbers.k, i % numbers.k));
  }
}

/// Two elements to a byte, the first in its low half. k is even.
__global__ void fill_halves(std::byte* target, WholeNumbers numbers, WholeStream matrix, std::size_t lines) {
  for (std::size_t i = first_index(); i < lines * numbers.k / 2; i += index_step()) {
    const std::size_t line = 2 * i / numbers.k, term = 2 * i % numbers.k;
    const auto code = [&](std::size_t at) {
      return encode(kE2m1, static_cast<float>(whole_element(numbers, matrix, line, at)));
    };
    target[i] = std::byte{static_cast<std::uint8_t>(code(term) | code(term + 1) << 4)};
  }
}

/// Element `index` of a result, as a double; not a number where its code is none.
__device__ double loaded(const std::byte* d, Format format, std::size_t index) {
  switch (format) {
    case Format::fp64:
      return reinterpret_cast<const double*>(d)[index];
    case Format::fp32:
      return reinterpret_cast<const float*>(d)[index];
    case Format::int32:
      return reinterpret_cast<const std::int32_t*>(d)[index];
    case Format::bf16:
      return __uint_as_float(std::uint32_t{reinterpret_cast<const std::uint16_t*>(d)[index]} << 16U);
    case Format::fp16: {
      const std::uint16_t code = reinterpret_cast<const std::uint16_t*>(d)[index];
      return (code & 0x7fffU) > kFp16.largest ? nan("") : static_cast<double>(decode(kFp16, code));
    }
    default:
      return nan("");
  }
}

__global__ void sum_terms(WholeNumbers numbers, std::uint64_t* terms) {
  for (std::size_t i = first_index(); i < numbers.k; i += index_step()) terms[i] = weighted_term(numbers, i);
}

__global__ void check_lines(const std::byte* d, Format format, double factor, WholeNumbers numbers,
                            const std::uint64_t* terms, std::uint64_t* wrong) {
  for (std::size_t line = first_index(); line < numbers.m; line += index_step()) {
    const auto result = [&](std::size_t column) { return factor * loaded(d, format, column * numbers.m + line); };
    if (!whole_line_is_right(numbers, line, terms, result)) {
      atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ULL);
    }
  }
}

unsigned blocks_for(std::size_t items) {
  const std::size_t blocks = (items + kThreads - 1) / kThreads;
  return blocks < kMostBlocks ? static_cast<unsigned>(blocks) : kMostBlocks;
}

}  // namespace

void fill_whole(const Stream& stream, std::byte* target, Format format, const WholeNumbers& numbers, WholeStream matrix,
                std::size_t lines) {
  if (format == Format::e2m1) {
    fill_halves<<<blocks_for(lines * numbers.k / 2), kThreads, 0, stream.get()>>>(target, numbers, matrix, lines);
  } else {
    fill<<<blocks_for(lines * numbers.k), kThreads, 0, stream.get()>>>(target, format, numbers, matrix, lines);
  }
  check(cudaGetLastError(), "filling a matrix with whole numbers");
}

void check_whole(const Stream& stream, const std::byte* d, Format format, double factor, const WholeNumbers& numbers,
                 std::uint64_t* terms, std::uint64_t* wrong) {
  sum_terms<<<blocks_for(numbers.k), kThreads, 0, stream.get()>>>(numbers, terms);
  check_lines<<<blocks_for(numbers.m), kThreads, 0, stream.get()>>>(d, format, factor, numbers, terms, wrong);
  check(cudaGetLastError(), "checking a product of whole numbers");
}

}  // namespace assay::cuda
