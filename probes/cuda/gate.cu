// gate: the kernel that spins until the gate opens.

#include <cuda_runtime.h>

#include "probes/cuda/gate.h"

namespace assay::cuda {
namespace {

constexpr double kNanoseconds = 1e9;

/// Spins on host memory by the device's clock in nanoseconds, which no change of the clock rate affects.
__global__ void hold(volatile const std::uint64_t* opened, volatile std::uint64_t* ran_out, std::uint64_t round,
                     std::uint64_t limit_ns) {
  std::uint64_t begin = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  while (*opened < round) {
    std::uint64_t now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin > limit_ns) {
      *ran_out = *ran_out + 1;
      __threadfence_system();
      return;
    }
  }
}

}  // namespace

void enqueue_hold(const std::uint64_t* opened, std::uint64_t* ran_out, std::uint64_t round, Seconds limit,
                  const Stream& stream) {
  hold<<<1, 1, 0, stream.get()>>>(opened, ran_out, round, static_cast<std::uint64_t>(limit.count * kNanoseconds));
  check(cudaGetLastError(), "closing the gate");
}

}  // namespace assay::cuda
