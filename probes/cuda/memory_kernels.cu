// memory_kernels: 16 bytes a load, four loads of a thread in flight, grid-stride loops. Blocks are many times what the
// GPU holds at once, so that a slow multiprocessor takes fewer of them instead of being waited for.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <cuda_runtime.h>

#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/payload.h"

namespace assay::cuda {
namespace {

using Word = unsigned long long;  // what atomicAdd takes; the same 64 bits as std::uint64_t

constexpr unsigned kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr std::uint64_t kUnroll = 4;
constexpr std::uint64_t kWaves = 16;  // a block's work is then some 60 rounds of the loop in 4 GiB
static_assert(sizeof(double2) == kVectorBytes && sizeof(ulonglong2) == kVectorBytes);

template <std::uint64_t kValue>
struct Count {
  static constexpr std::uint64_t value = kValue;
};

/// Calls step(first, stride, count) so that all indices below `vectors` are taken once: first, first + stride, ...
/// count of them at a time.
template <class Step>
__device__ void stride_over(std::uint64_t vectors, Step step) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < vectors; i += kUnroll * stride) step(i, stride, Count<kUnroll>{});
  for (; i < vectors; i += stride) step(i, stride, Count<1>{});
}

/// Adds every thread's `mine` to one of the slots: warps first, then the block, then memory.
__device__ void add_to_slots(Word mine, Word* sums, unsigned slots) {
  __shared__ Word of_warp[kThreads / kWarp];
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    mine += __shfl_down_sync(0xffffffffU, mine, distance);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Word total = 0;
  for (const Word one : of_warp) total += one;
  if (total != 0) atomicAdd(sums + blockIdx.x % slots, total);
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(const double2* __restrict__ from, double2* __restrict__ to, std::uint64_t vectors) {
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
    double2 x[count.value];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) x[k] = from[i + k * stride];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) to[i + k * stride] = x[k];
  });
}

__global__ void __launch_bounds__(kThreads)
    scale_kernel(const double2* __restrict__ c, double2* __restrict__ b, std::uint64_t vectors) {
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
    double2 x[count.value];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) x[k] = c[i + k * stride];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) b[i + k * stride] = {kHbmScalar * x[k].x, kHbmScalar * x[k].y};
  });
}

/// out = x + factor y: add with factor 1, triad with STREAM's scalar. All numbers are whole and below 2^53: fused or
/// not, the result is the same.
__global__ void __launch_bounds__(kThreads)
    add_kernel(const double2* __restrict__ x, const double2* __restrict__ y, double factor, double2* __restrict__ out,
               std::uint64_t vectors) {
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
    double2 p[count.value], q[count.value];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) {
      p[k] = x[i + k * stride];
      q[k] = y[i + k * stride];
    }
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) {
      out[i + k * stride] = {p[k].x + factor * q[k].x, p[k].y + factor * q[k].y};
    }
  });
}

__global__ void __launch_bounds__(kThreads)
    dot_kernel(const double2* __restrict__ a, const double2* __restrict__ b, std::uint64_t vectors, Word* sums) {
  double sum = 0;  // exact: products below 2^20, and far fewer than 2^33 of them in one thread
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
    double2 p[count.value], q[count.value];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) {
      p[k] = a[i + k * stride];
      q[k] = b[i + k * stride];
    }
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) sum += p[k].x * q[k].x + p[k].y * q[k].y;
  });
  add_to_slots(static_cast<Word>(sum), sums, kSumSlots);
}

__global__ void __launch_bounds__(kThreads)
    sum_kernel(const ulonglong2* __restrict__ from, std::uint64_t vectors, Word* sums) {
  Word sum = 0;
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
    ulonglong2 x[count.value];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) x[k] = from[i + k * stride];
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) sum += x[k].x + x[k].y;
  });
  add_to_slots(sum, sums, kSumSlots);
}

__global__ void __launch_bounds__(kThreads)
    fill_kernel(ulonglong2* __restrict__ to, std::uint64_t vectors, std::uint64_t seed, std::uint64_t flipped) {
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) {
      const std::uint64_t word = 2 * (i + k * stride);
      to[i + k * stride] = {payload_word(seed, word) ^ flipped, payload_word(seed, word + 1) ^ flipped};
    }
  });
}

__global__ void __launch_bounds__(kThreads)
    payload_check_kernel(const ulonglong2* __restrict__ found, std::uint64_t vectors, std::uint64_t seed,
                         std::uint64_t flipped, Word* wrong) {
  Word bad = 0;
  stride_over(vectors, [&](std::uint64_t i, std::uint64_t stride, auto count) {
#pragma unroll
    for (std::uint64_t k = 0; k < count.value; ++k) {
      const ulonglong2 x = found[i + k * stride];
      const std::uint64_t word = 2 * (i + k * stride);
      bad += ((x.x ^ flipped) != payload_word(seed, word) ? 1U : 0U) +
             ((x.y ^ flipped) != payload_word(seed, word + 1) ? 1U : 0U);
    }
  });
  add_to_slots(bad, wrong, 1);
}

__global__ void __launch_bounds__(kThreads)
    start_kernel(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    target[i] = hbm_start_value(kernel, array, i);
  }
}

__global__ void __launch_bounds__(kThreads)
    check_kernel(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, Word* wrong) {
  Word bad = 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    // Equality in this sense is false for a NaN, which is then a mismatch.
    bad += found[i] == hbm_expected(kernel, array, i) ? 0U : 1U;
  }
  add_to_slots(bad, wrong, 1);
}

__global__ void chase_kernel(const std::byte* memory, Word* at, std::uint64_t steps) {
  Word offset = *at;
  for (std::uint64_t i = 0; i < steps; ++i) offset = __ldcv(reinterpret_cast<const Word*>(memory + offset));
  *at = offset;
}

/// Blocks for `kernel` over `vectors` on the current device: kWaves times what it holds, or as many as have work.
template <class Kernel>
unsigned blocks_for(Kernel* kernel, std::uint64_t vectors) {
  int device = 0, processors = 0, resident = 0;
  check(cudaGetDevice(&device), "asking for the current GPU");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "counting multiprocessors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, 0), "asking how many blocks fit");
  const std::uint64_t most = static_cast<std::uint64_t>(processors) * static_cast<std::uint64_t>(resident) * kWaves;
  const std::uint64_t useful = (vectors + kThreads * kUnroll - 1) / (kThreads * kUnroll);
  return static_cast<unsigned>(std::max<std::uint64_t>(1, std::min(most, useful)));
}

/// Launches `kernel` over `vectors`; the arguments are those of the kernel.
template <class... Parameters, class... Arguments>
void launch_over(std::uint64_t vectors, const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<blocks_for(kernel, vectors), kThreads, 0, stream.get()>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel");
}

std::uint64_t vectors_in(Bytes size) {
  if (size.count % kVectorBytes != 0) throw std::invalid_argument("a size is not a multiple of 16 B");
  return size.count / kVectorBytes;
}

Word* words(std::uint64_t* pointer) { return reinterpret_cast<Word*>(pointer); }

}  // namespace

void enqueue_start(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements, const Stream& stream) {
  launch_over(elements, stream, start_kernel, kernel, array, target, elements);
}

void enqueue_pass(HbmKernel kernel, const HbmPointers& arrays, std::uint64_t* sums, const Stream& stream) {
  const std::uint64_t vectors = vectors_in({arrays.elements * sizeof(double)});
  auto* const a = reinterpret_cast<double2*>(arrays.a);
  auto* const b = reinterpret_cast<double2*>(arrays.b);
  auto* const c = reinterpret_cast<double2*>(arrays.c);
  switch (kernel) {
    case HbmKernel::read:
      return launch_over(vectors, stream, sum_kernel, reinterpret_cast<const ulonglong2*>(a), vectors, words(sums));
    case HbmKernel::write:
      return launch_over(vectors, stream, fill_kernel, reinterpret_cast<ulonglong2*>(a), vectors, std::uint64_t{0},
                         std::uint64_t{0});
    case HbmKernel::copy:
      return launch_over(vectors, stream, copy_kernel, a, c, vectors);
    case HbmKernel::scale:
      return launch_over(vectors, stream, scale_kernel, c, b, vectors);
    case HbmKernel::add:
      return launch_over(vectors, stream, add_kernel, a, b, 1.0, c, vectors);
    case HbmKernel::triad:
      return launch_over(vectors, stream, add_kernel, b, c, kHbmScalar, a, vectors);
    case HbmKernel::dot:
      return launch_over(vectors, stream, dot_kernel, a, b, vectors, words(sums));
  }
}

void enqueue_check(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, std::uint64_t* wrong,
                   const Stream& stream) {
  launch_over(elements, stream, check_kernel, kernel, array, found, elements, words(wrong));
}

void enqueue_fill(std::byte* target, Bytes size, std::uint64_t seed, const Stream& stream, std::uint64_t flipped) {
  launch_over(vectors_in(size), stream, fill_kernel, reinterpret_cast<ulonglong2*>(target), vectors_in(size), seed,
              flipped);
}

void enqueue_sum(const std::byte* source, Bytes size, std::uint64_t* sums, const Stream& stream) {
  launch_over(vectors_in(size), stream, sum_kernel, reinterpret_cast<const ulonglong2*>(source), vectors_in(size),
              words(sums));
}

void enqueue_payload_check(const std::byte* found, Bytes size, std::uint64_t seed, std::uint64_t* wrong,
                           const Stream& stream, std::uint64_t flipped) {
  launch_over(vectors_in(size), stream, payload_check_kernel, reinterpret_cast<const ulonglong2*>(found),
              vectors_in(size), seed, flipped, words(wrong));
}

void enqueue_copy(std::byte* target, const std::byte* source, Bytes size, const Stream& stream) {
  launch_over(vectors_in(size), stream, copy_kernel, reinterpret_cast<const double2*>(source),
              reinterpret_cast<double2*>(target), vectors_in(size));
}

void enqueue_chase(const std::byte* memory, std::uint64_t* at, std::uint64_t steps, const Stream& stream) {
  chase_kernel<<<1, 1, 0, stream.get()>>>(memory, words(at), steps);
  check(cudaGetLastError(), "launching the chase");
}

}  // namespace assay::cuda
