// gemm_launches: the kernels of gemm_kernels.cuh behind the functions of gemm_operands.h and whole_kernels.h, for a
// compiler's or a library's way to launch: the file that includes this has launch_gemm(blocks, stream, kernel,
// arguments...).
#pragma once

#include "probes/cuda/gemm_kernels.cuh"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/whole_kernels.h"

namespace assay::cuda {

/// Blocks for `items`; loops take the rest. Enough for every multiprocessor several times.
inline unsigned gemm_blocks(std::uint64_t items) {
  constexpr std::uint64_t kMostBlocks = 4096;
  const std::uint64_t blocks = (items + kernels::kGemmThreads - 1) / kernels::kGemmThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}
inline std::uint64_t gemm_stride(unsigned blocks) { return std::uint64_t{blocks} * kernels::kGemmThreads; }

/// Launches `kernel` over `items`, which takes the stride as its last argument.
template <class... Parameters, class... Arguments>
void launch_over_items(std::uint64_t items, const Stream& stream, void (*kernel)(Parameters...),
                       Arguments... arguments) {
  const unsigned blocks = gemm_blocks(items);
  launch_gemm(blocks, stream, kernel, arguments..., gemm_stride(blocks));
}

void fill_elements(const Stream& stream, std::byte* target, Format format, std::size_t count, std::uint64_t seed,
                   Pattern pattern) {
  launch_over_items(count, stream, kernels::assay_gemm_fill, target, format, std::uint64_t{count}, seed, pattern);
}

void sum_up(const Stream& stream, const std::byte* first, std::size_t stride, Bytes size, std::size_t count,
            std::uint64_t* sums) {
  constexpr std::size_t kMostResults = 65535;  // 2^28 blocks, far below the limit of a grid
  clear(reinterpret_cast<std::byte*>(sums), {count * sizeof(std::uint64_t)}, stream);
  const std::uint64_t words = size.count / sizeof(std::uint32_t);
  const unsigned blocks = gemm_blocks(words);
  for (std::size_t begin = 0; begin < count; begin += kMostResults) {
    const auto results = static_cast<unsigned>(count - begin < kMostResults ? count - begin : kMostResults);
    launch_gemm(blocks * results, stream, kernels::assay_gemm_sum, first + begin * stride, std::uint64_t{stride}, words,
                reinterpret_cast<words::Word*>(sums + begin), blocks, gemm_stride(blocks));
  }
}

void fill_whole(const Stream& stream, std::byte* target, Format format, const WholeNumbers& numbers, WholeStream matrix,
                std::size_t lines) {
  const std::uint64_t count = std::uint64_t{lines} * numbers.k;
  if (format == Format::e2m1)
    launch_over_items(count / 2, stream, kernels::assay_whole_halves, target, numbers, matrix, count / 2);
  else
    launch_over_items(count, stream, kernels::assay_whole_fill, target, format, numbers, matrix, count);
}

void check_whole(const Stream& stream, const std::byte* d, Format format, double factor, const WholeNumbers& numbers,
                 std::uint64_t* terms, std::uint64_t* wrong) {
  launch_over_items(numbers.k, stream, kernels::assay_whole_terms, numbers, terms);
  launch_over_items(numbers.m, stream, kernels::assay_whole_check, d, format, factor, numbers,
                    static_cast<const std::uint64_t*>(terms), reinterpret_cast<words::Word*>(wrong));
}

}  // namespace assay::cuda
