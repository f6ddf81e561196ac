// cast_kernels: FP8 copies of a matrix, as it is and transposed: one pass for the largest magnitude, one for both
// copies. No header of CUDA is included, so that a test runs the kernels on a host. Declared before the include:
// fp8_pair(shape, a, b), the codes of two scaled numbers, the first in the lower byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "workloads/train/engine/step_values.h"
#include "workloads/train_gpu/fp8_cast.h"

namespace assay::train_gpu::kernels {

constexpr unsigned kCastThreads = 256;
constexpr unsigned kTile = 64;           // rows and columns of a block
constexpr unsigned kTurned = kTile + 4;  // B from one column to the next, for other banks of shared memory
constexpr unsigned kCodes = 8;           // of one thread in a row
constexpr unsigned kRun = 16;            // codes of one thread in a column

template <class Number>
struct Eight {
  Number kept[kCodes];
};
template <class Number>
__device__ Eight<Number> load_eight(const Number* from) {
  uint4 bits[sizeof(Eight<Number>) / sizeof(uint4)];
  for (std::size_t i = 0; i < sizeof bits / sizeof *bits; ++i) bits[i] = reinterpret_cast<const uint4*>(from)[i];
  Eight<Number> numbers;
  std::memcpy(&numbers, bits, sizeof bits);
  return numbers;
}

/// Of `blocks` blocks. Magnitudes compare as their bits do, and a NaN is above all of them.
template <class Number>
__global__ void largest_kernel(std::size_t eights, unsigned blocks, const Number* from, CastScale* scale) {
  __shared__ unsigned most_of_block;
  if (threadIdx.x == 0) most_of_block = 0;
  __syncthreads();
  unsigned most = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * kCastThreads + threadIdx.x; i < eights;
       i += std::size_t{blocks} * kCastThreads) {
    const Eight<Number> numbers = load_eight(from + i * kCodes);
    for (const Number one : numbers.kept) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(train::widened(one)) & 0x7FFFFFFFU;
      most = magnitude > most ? magnitude : most;
    }
  }
  atomicMax(&most_of_block, most);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned*>(&scale->largest), most_of_block);
}

/// A tile for each block.
template <class Number>
__global__ void cast_kernel(CastShape s, const Number* from, std::uint8_t* plain, std::uint8_t* turned, CastScale* at) {
  __shared__ unsigned words[kTile * kTurned / sizeof(unsigned)];
  auto* const tile = reinterpret_cast<std::uint8_t*>(words);
  const float scale = fp8_scale(s, at->largest);
  const std::size_t first_row = std::size_t{blockIdx.y} * kTile, first_column = std::size_t{blockIdx.x} * kTile;
  if (first_row + first_column == 0 && threadIdx.x == 0) at->inverse = 1 / scale;
  constexpr unsigned kAcross = kTile / kCodes;
  for (unsigned i = threadIdx.x; i < kTile * kAcross; i += kCastThreads) {
    const unsigned row = i / kAcross, column = i % kAcross * kCodes;
    if (first_row + row >= s.rows || first_column + column >= s.columns) continue;
    const std::size_t place = (first_row + row) * s.columns + first_column + column;
    const Eight<Number> numbers = load_eight(from + place);
    std::uint64_t codes = 0;
    for (unsigned k = 0; k < kCodes; k += 2) {
      const std::uint64_t pair =
          fp8_pair(s, train::widened(numbers.kept[k]) * scale, train::widened(numbers.kept[k + 1]) * scale);
      codes |= pair << 8 * k;
    }
    *reinterpret_cast<std::uint64_t*>(plain + place) = codes;
    for (unsigned k = 0; k < kCodes; ++k)
      tile[(column + k) * kTurned + row] = static_cast<std::uint8_t>(codes >> 8 * k & 0xFFU);
  }
  __syncthreads();
  static_assert(kTile * kTile == kCastThreads * kRun && kTurned % sizeof(unsigned) == 0);
  const unsigned column = threadIdx.x / (kTile / kRun), row = threadIdx.x % (kTile / kRun) * kRun;
  if (first_column + column >= s.columns || first_row + row >= s.rows) return;
  const unsigned* const run = words + (column * kTurned + row) / sizeof(unsigned);
  *reinterpret_cast<uint4*>(turned + (first_column + column) * s.rows + first_row + row) = {run[0], run[1], run[2],
                                                                                            run[3]};
}

}  // namespace assay::train_gpu::kernels
