// put_kernels: stores to the memory of peers (LSA windows of NCCL's device API, nccl_device.h), and counts.
#include <algorithm>

#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>
#include <cuda/atomic>

#include "workloads/inference/put_kernels.h"

namespace assay::inference {
namespace {

// Read by ncclGetLsaPointer; see reads_windows().
static_assert(offsetof(ncclWindow_vidmem, lsaFlatBase) == 8 && offsetof(ncclWindow_vidmem, stride4G) == 24);

constexpr unsigned kThreads = 512, kBlocksEach = 8;  // of a rank: 16 B a thread and turn keep an NVLink busy

template <class Word>
__device__ void copy(const std::byte* from, std::byte* to, std::uint64_t bytes) {
  const auto* const source = reinterpret_cast<const Word*>(from);
  auto* const target = reinterpret_cast<Word*>(to);
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes / sizeof(Word); i += threads)
    target[i] = source[i];
}

__global__ void put_kernel(const std::byte* sent, ncclWindow_t window, PutPlan plan) {
  const unsigned rank = blockIdx.y;
  const std::uint64_t bytes = plan.bytes[rank], from = plan.from[rank], at = plan.at[rank];
  if (bytes == 0) return;
  auto* const target = static_cast<std::byte*>(ncclGetLsaPointer(window, at, static_cast<int>(rank)));
  if ((bytes | from | at) % sizeof(uint4) == 0)
    copy<uint4>(sent + from, target, bytes);
  else
    copy<std::uint64_t>(sent + from, target, bytes);
}

/// One thread for each rank. The kernel before is done when this one begins; a release of the system's scope makes its
/// stores seen before the count.
__global__ void signal_kernel(ncclWindow_t window, SignalPlan plan, std::uint64_t limit_ns) {
  using Count = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_system>;
  const unsigned rank = threadIdx.x;
  if (rank >= plan.ranks) return;
  const auto count_in = [&](unsigned place, unsigned of) {
    void* const memory = ncclGetLsaPointer(window, of * sizeof(std::uint64_t), static_cast<int>(place));
    return Count(*static_cast<std::uint64_t*>(memory));
  };
  __threadfence_system();
  if (plan.raise[rank] != 0) count_in(rank, plan.own).store(plan.raise[rank], ::cuda::memory_order_release);
  if (plan.await[rank] == 0) return;
  std::uint64_t begin = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  while (count_in(plan.own, rank).load(::cuda::memory_order_acquire) < plan.await[rank]) {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if (now - begin > limit_ns) return;
  }
}

}  // namespace

int nccl_of_put_kernels() { return NCCL_VERSION_CODE; }

void enqueue_puts(const std::byte* sent, ncclWindow_vidmem* window, const PutPlan& plan, const cuda::Stream& stream) {
  const std::uint64_t* const end = plan.bytes + plan.ranks;
  if (std::all_of(plan.bytes, end, [](std::uint64_t bytes) { return bytes == 0; })) return;
  put_kernel<<<dim3(kBlocksEach, plan.ranks), kThreads, 0, stream.get()>>>(sent, window, plan);
  cuda::check(cudaGetLastError(), "putting slots into the memory of other GPUs");
}

void enqueue_signals(ncclWindow_vidmem* window, const SignalPlan& plan, Seconds limit, const cuda::Stream& stream) {
  constexpr double kNanoseconds = 1e9;
  signal_kernel<<<1, kMostPutRanks, 0, stream.get()>>>(window, plan,
                                                       static_cast<std::uint64_t>(limit.count * kNanoseconds));
  cuda::check(cudaGetLastError(), "raising counts in the memory of other GPUs");
}

}  // namespace assay::inference
