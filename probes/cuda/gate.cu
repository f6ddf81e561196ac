// gate: the kernel that spins until the gate opens.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

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

Gate::Gate() : flags_(Bytes{2 * sizeof(std::uint64_t)}), longest_hold_(kLongestHold) {
  constexpr double kLeast = 1, kMost = 100;
  const char* given = std::getenv("ASSAY_GATE_SECONDS");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  if (seconds >= kLeast && seconds <= kMost) longest_hold_ = {seconds};
}

void Gate::close(const Stream& stream) {
  auto* flags = flags_.as<std::uint64_t>();
  hold<<<1, 1, 0, stream.get()>>>(flags, flags + 1, ++round_,
                                  static_cast<std::uint64_t>(longest_hold_.count * kNanoseconds));
  check(cudaGetLastError(), "closing the gate");
}

void Gate::open() {
  // Written through a volatile pointer: the reader is a device, which the compiler cannot see.
  *static_cast<volatile std::uint64_t*>(flags_.as<std::uint64_t>()) = round_;
}

void Gate::check_held() const {
  if (*static_cast<volatile const std::uint64_t*>(flags_.as<std::uint64_t>() + 1) != 0) {
    throw std::runtime_error(
        "the gate before a measurement opened too early: enqueueing took longer than the gate's time");
  }
}

}  // namespace assay::cuda
