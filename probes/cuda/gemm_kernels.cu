// gemm_kernels: operands made on the device, and sums of the results.
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/mixed.h"
#include "probes/cuda/quantise.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMostBlocks = 4096;  // loops take the rest; enough for every multiprocessor several times

/// A standard normal number (Box & Muller 1958); the smallest uniform number keeps it within 6.7.
__device__ float normal(std::uint64_t seed, std::uint64_t index) {
  constexpr float kUnit = 0x1p-32F;
  const std::uint64_t bits = mixed(seed, index);
  const float first = (static_cast<float>(bits >> 32) + 0.5F) * kUnit;
  const float second = static_cast<float>(bits & 0xffffffffU) * kUnit;
  return sqrtf(-2.0F * logf(fminf(first, 1.0F))) * cospif(2.0F * second);
}

__device__ float element(Pattern pattern, std::uint64_t seed, std::uint64_t index) {
  return pattern == Pattern::constant ? 1.0F : normal(seed, index);
}

/// All 53 bits of a double vary: the second number fills the bits below the first.
__device__ double wide_element(Pattern pattern, std::uint64_t seed, std::uint64_t index) {
  constexpr double kBelow = 0x1p-24;
  if (pattern == Pattern::constant) return 1.0;
  return normal(seed, index) + kBelow * normal(~seed, index);
}

__device__ std::size_t first_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t index_step() { return std::size_t{gridDim.x} * blockDim.x; }

__global__ void fill(std::byte* target, Format format, std::size_t count, std::uint64_t seed, Pattern pattern) {
  for (std::size_t i = first_index(); i < count; i += index_step()) {
    if (format == Format::fp64) {
      reinterpret_cast<double*>(target)[i] = wide_element(pattern, seed, i);
      continue;
    }
    const float value = element(pattern, seed, i);
    switch (format) {
      case Format::fp32:
        reinterpret_cast<float*>(target)[i] = value;
        break;
      case Format::tf32:
        reinterpret_cast<float*>(target)[i] = round_tf32(value);
        break;
      case Format::fp16:
        reinterpret_cast<std::uint16_t*>(target)[i] = static_cast<std::uint16_t>(encode(kFp16, value));
        break;
      case Format::bf16:
        reinterpret_cast<std::uint16_t*>(target)[i] = static_cast<std::uint16_t>(encode(kBf16, value));
        break;
      case Format::e4m3:
        reinterpret_cast<std::uint8_t*>(target)[i] = static_cast<std::uint8_t>(encode(kE4m3, value));
        break;
      case Format::e5m2:
        reinterpret_cast<std::uint8_t*>(target)[i] = static_cast<std::uint8_t>(encode(kE5m2, value));
        break;
      case Format::int8:
        reinterpret_cast<std::int8_t*>(target)[i] = encode_int8(value);
        break;
      default:
        break;
    }
  }
}

/// One thread makes one block: its numbers, their scale, their codes.
template <int kBlock>
__global__ void fill_scaled(std::byte* target, std::byte* scales, std::size_t lines, std::size_t k, std::uint64_t seed,
                            Pattern pattern) {
  constexpr bool kMx = kBlock == static_cast<int>(block_of(Scaling::mx));
  const std::size_t blocks = k / kBlock;
  for (std::size_t at = first_index(); at < lines * blocks; at += index_step()) {
    float values[kBlock];
    float largest = 0;
    for (int i = 0; i < kBlock; ++i) {
      values[i] = element(pattern, seed, at * kBlock + i);
      largest = fmaxf(largest, fabsf(values[i]));
    }
    const std::uint8_t scale = kMx ? mx_scale(largest) : nv_scale(largest);
    const float unit = kMx ? decode_ue8m0(scale) : decode(kE4m3, scale);
    scales[scale_index(at / blocks, at % blocks, blocks)] = std::byte{scale};
    for (int i = 0; i < kBlock; i += 2) {
      const std::uint32_t low = encode(kMx ? kE4m3 : kE2m1, values[i] / unit);
      const std::uint32_t high = encode(kMx ? kE4m3 : kE2m1, values[i + 1] / unit);
      if constexpr (kMx) {
        target[at * kBlock + i] = std::byte{static_cast<std::uint8_t>(low)};
        target[at * kBlock + i + 1] = std::byte{static_cast<std::uint8_t>(high)};
      } else {
        target[(at * kBlock + i) / 2] = std::byte{static_cast<std::uint8_t>(low | high << 4)};
      }
    }
  }
}

/// Adds up mixed words: no order of the additions changes the sum, every word's value and place does.
__global__ void add_words(const std::byte* first, std::size_t stride, std::size_t words, std::uint64_t* sums) {
  constexpr unsigned kWholeWarp = 0xffffffffU;
  const auto* data = reinterpret_cast<const std::uint32_t*>(first + std::size_t{blockIdx.y} * stride);
  std::uint64_t sum = 0;
  for (std::size_t i = first_index(); i < words; i += index_step()) sum += mixed(data[i], i);
  for (int distance = warpSize / 2; distance > 0; distance /= 2) sum += __shfl_down_sync(kWholeWarp, sum, distance);
  if (threadIdx.x % warpSize == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(sums + blockIdx.y), static_cast<unsigned long long>(sum));
  }
}

unsigned blocks_for(std::size_t items) {
  const std::size_t blocks = (items + kThreads - 1) / kThreads;
  return blocks < kMostBlocks ? static_cast<unsigned>(blocks) : kMostBlocks;
}

}  // namespace

void fill_elements(const Stream& stream, std::byte* target, Format format, std::size_t count, std::uint64_t seed,
                   Pattern pattern) {
  fill<<<blocks_for(count), kThreads, 0, stream.get()>>>(target, format, count, seed, pattern);
  check(cudaGetLastError(), "filling a matrix");
}

void fill_blocks(const Stream& stream, std::byte* target, std::byte* scales, Scaling scaling, std::size_t lines,
                 std::size_t k, std::uint64_t seed, Pattern pattern) {
  constexpr int kMxBlock = static_cast<int>(block_of(Scaling::mx)), kNvBlock = static_cast<int>(block_of(Scaling::nv));
  if (scaling == Scaling::mx) {
    fill_scaled<kMxBlock>
        <<<blocks_for(lines * k / kMxBlock), kThreads, 0, stream.get()>>>(target, scales, lines, k, seed, pattern);
  } else {
    fill_scaled<kNvBlock>
        <<<blocks_for(lines * k / kNvBlock), kThreads, 0, stream.get()>>>(target, scales, lines, k, seed, pattern);
  }
  check(cudaGetLastError(), "filling a matrix of blocks");
}

void sum_up(const Stream& stream, const std::byte* first, std::size_t stride, Bytes size, std::size_t count,
            std::uint64_t* sums) {
  constexpr std::size_t kMostGridRows = 65535;  // CUDA's limit of gridDim.y
  check(cudaMemsetAsync(sums, 0, count * sizeof(std::uint64_t), stream.get()), "clearing sums");
  for (std::size_t begin = 0; begin < count; begin += kMostGridRows) {
    const std::size_t rows = count - begin < kMostGridRows ? count - begin : kMostGridRows;
    const std::size_t words = size.count / sizeof(std::uint32_t);
    add_words<<<dim3(blocks_for(words), static_cast<unsigned>(rows)), kThreads, 0, stream.get()>>>(
        first + begin * stride, stride, words, sums + begin);
  }
  check(cudaGetLastError(), "summing up results");
}

}  // namespace assay::cuda
