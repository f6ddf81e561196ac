// kernel_parts: common parts of the kernels of a step: indices, sums over a block, and 16 B of numbers at a time.
#pragma once

#include <cstring>

#include <cuda_runtime.h>

#include "probes/cuda/device.h"
#include "workloads/train/engine/step_values.h"

namespace assay::train_gpu::kernels {

constexpr unsigned kThreads = 256;
constexpr unsigned kMostBlocks = 65535;
inline constexpr float kEpsilon = 1e-5F, kFirstKept = 0.9F, kSecondKept = 0.95F,
                       kRate = 1e-6F;  // those of step_math

inline unsigned blocks_for(std::size_t count) {
  const std::size_t wanted = (count + kThreads - 1) / kThreads;
  return wanted < 1 ? 1 : wanted < kMostBlocks ? static_cast<unsigned>(wanted) : kMostBlocks;
}
inline unsigned rows_for(std::size_t rows) {
  return rows < 1 ? 1 : rows < kMostBlocks ? static_cast<unsigned>(rows) : kMostBlocks;
}
inline void launched(const char* what) { cuda::check(cudaGetLastError(), what); }

inline __device__ std::size_t first_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
inline __device__ std::size_t stride() { return std::size_t{gridDim.x} * blockDim.x; }

/// Sum, or maximum, over a block of threads, the same in every thread, in one order.
template <class Join>
__device__ float over_block(float own, Join join) {
  __shared__ float parts[kThreads];
  parts[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] = join(parts[threadIdx.x], parts[threadIdx.x + half]);
    __syncthreads();
  }
  const float all = parts[0];
  __syncthreads();
  return all;
}
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Most {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Numbers that a thread moves at once, 16 B. check_device_engine() and Arena see to it that all rows begin at such.
template <class Number>
constexpr std::size_t kGroup = 16 / sizeof(Number);
template <class Number>
struct Group {
  Number kept[kGroup<Number>];
  __device__ float operator[](std::size_t k) const { return train::widened(kept[k]); }
  __device__ void set(std::size_t k, float value) { kept[k] = train::narrowed<Number>(value); }
};
template <class Number>
__device__ Group<Number> load(const Number* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  Group<Number> group;
  memcpy(&group, &bits, sizeof bits);
  return group;
}
template <class Number>
__device__ void store(Number* to, const Group<Number>& group) {
  uint4 bits;
  memcpy(&bits, &group, sizeof bits);
  *reinterpret_cast<uint4*>(to) = bits;
}

/// Calls work(i) with the first place of every group of a line that this thread of a block has.
template <class Number, class Work>
__device__ void for_groups(std::size_t count, const Work& work) {
  for (std::size_t i = threadIdx.x * kGroup<Number>; i < count; i += kThreads * kGroup<Number>) work(i);
}
/// Calls work(i, number) for every number of a line that this thread of a block has.
template <class Number, class Work>
__device__ void for_numbers(const Number* line, std::size_t count, const Work& work) {
  for_groups<Number>(count, [&](std::size_t first) {
    const Group<Number> group = load(line + first);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) work(first + k, group[k]);
  });
}
/// Every number of a line becomes change(i, number).
template <class Number, class Change>
__device__ void change_numbers(Number* line, std::size_t count, const Change& change) {
  for_groups<Number>(count, [&](std::size_t first) {
    Group<Number> group = load(line + first);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) group.set(k, change(first + k, group[k]));
    store(line + first, group);
  });
}

}  // namespace assay::train_gpu::kernels
