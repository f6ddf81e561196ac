// kernel_words: what kernels are written in, for the compiler at hand: nvcc, clang for AMD GPUs with nothing but its
// builtins (hiprtc has it on a node), or the host's, for the types of a launch and for tests.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#elif defined(__HIP__)
#ifndef __global__  // hiprtc defines them itself
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
#elif !defined(__global__)  // a test that runs kernels on the host has its own
#define __global__ inline
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#endif

namespace assay::cuda::words {

using Word = unsigned long long;  // what atomics take; the same 64 bits as std::uint64_t

#if defined(__CUDACC__)

using Doubles = double2;
using Pair = ulonglong2;

__device__ inline unsigned thread_index() { return threadIdx.x; }
__device__ inline unsigned block_index() { return blockIdx.x; }
__device__ inline Word add_atomically(Word* to, Word value) { return atomicAdd(to, value); }
__device__ inline std::uint64_t bits_of(double number) {
  return static_cast<std::uint64_t>(__double_as_longlong(number));
}
__device__ inline float square_root(float number) { return sqrtf(number); }
__device__ inline float logarithm(float number) { return logf(number); }
/// Of an angle in turns, 0 to 1.
__device__ inline float cosine_of(float turns) { return cospif(2.0F * turns); }
/// Loads of memory that no thread writes; a load that no cache of the multiprocessor answers.
template <class T>
__device__ T load(const T* from) {
  return __ldg(from);
}
__device__ inline Word load_again(const Word* from) { return __ldcv(from); }

/// Leaves the sums of every thread's numbers with thread 0: warps first, then the block.
template <unsigned kThreads, unsigned kNumbers>
__device__ void add_over_block(Word (&mine)[kNumbers]) {
  constexpr unsigned kWarp = 32;
  __shared__ Word of_warp[kNumbers][kThreads / kWarp];
#pragma unroll
  for (unsigned number = 0; number < kNumbers; ++number) {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
      mine[number] += __shfl_down_sync(0xffffffffU, mine[number], distance);
    if (threadIdx.x % kWarp == 0) of_warp[number][threadIdx.x / kWarp] = mine[number];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (unsigned number = 0; number < kNumbers; ++number) {
    mine[number] = 0;
    for (const Word one : of_warp[number]) mine[number] += one;
  }
}

#else

struct alignas(16) Doubles {
  double x, y;
};
struct alignas(16) Pair {
  Word x, y;
};
template <class T>
__device__ T load(const T* from) {
  return *from;
}
__device__ inline std::uint64_t bits_of(double number) { return __builtin_bit_cast(std::uint64_t, number); }
__device__ inline float square_root(float number) { return __builtin_sqrtf(number); }
__device__ inline float logarithm(float number) { return __builtin_logf(number); }

#if defined(__HIP__)
__device__ inline unsigned thread_index() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline unsigned block_index() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline Word add_atomically(Word* to, Word value) {
  return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline Word load_again(const Word* from) {
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline Word add_for_host(Word* to, Word value) {
  return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline float cosine_of(float turns) { return __builtin_amdgcn_cosf(turns); }
/// A clock of constant rate (hipDeviceAttributeWallClockRate).
__device__ inline Word ticks() { return __builtin_amdgcn_s_memrealtime(); }
__device__ inline void block_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#else
/// The thread that runs, and its block: set by what runs kernels on the host.
struct HostPlace {
  unsigned thread = 0, block = 0;
  void (*barrier)() = nullptr;
};
inline thread_local HostPlace host_place;
inline unsigned thread_index() { return host_place.thread; }
inline unsigned block_index() { return host_place.block; }
inline Word add_atomically(Word* to, Word value) { return __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }
inline Word load_again(const Word* from) { return *static_cast<const volatile Word*>(from); }
inline Word add_for_host(Word* to, Word value) { return add_atomically(to, value); }
inline float cosine_of(float turns) { return __builtin_cosf(6.2831853F * turns); }
inline Word ticks() {
  static Word looks = 0;
  return ++looks;
}
inline void block_barrier() { host_place.barrier(); }
#endif

/// Leaves the sums of every thread's numbers with thread 0, by halves of the block: no word on the width of a wave.
template <unsigned kThreads, unsigned kNumbers>
__device__ void add_over_block(Word (&mine)[kNumbers]) {
  __shared__ Word of_thread[kNumbers][kThreads];
  const unsigned own = thread_index();
  for (unsigned number = 0; number < kNumbers; ++number) of_thread[number][own] = mine[number];
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    block_barrier();
    for (unsigned number = 0; number < kNumbers && own < half; ++number)
      of_thread[number][own] += of_thread[number][own + half];
  }
  if (own != 0) return;
  for (unsigned number = 0; number < kNumbers; ++number) mine[number] = of_thread[number][0];
}

#endif

}  // namespace assay::cuda::words
