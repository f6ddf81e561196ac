// fma_peak: the peak rate of the cores, measured by multiply-adds that touch registers only.
#pragma once

#include <cstdint>
#include <string_view>

#include "probes/core/units.h"
#include "probes/host/pinned_threads.h"

namespace assay::host {

/// One register-only multiply-add loop.
struct FmaKernel {
  std::string_view isa;       ///< "avx512f", "avx2_fma" or "portable" (the compiler's vectors of 16 bytes)
  double flop_per_round = 0;  ///< FLOPs of one round on one core; a multiply-add counts as two
  void (*run)(std::uint64_t rounds) = nullptr;
};

/// The widest kernel this processor has for 64-bit (`is_double`) or 32-bit elements.
FmaKernel fma_kernel(bool is_double);

/// FLOPs a second of `threads` cores that each did `rounds` of `kernel` in `time`.
constexpr double fma_rate(const FmaKernel& kernel, std::size_t threads, std::uint64_t rounds, Seconds time) {
  return kernel.flop_per_round * static_cast<double>(threads) * static_cast<double>(rounds) / time.count;
}
static_assert(fma_rate({.isa = "", .flop_per_round = 16}, 2, 1'000, Seconds{0.5}) == 64'000);

/// FLOPs a cycle and core that `rate` of `threads` cores means at `clock_hz`.
constexpr double flop_per_cycle(double rate, std::size_t threads, double clock_hz) {
  return rate / (static_cast<double>(threads) * clock_hz);
}
static_assert(flop_per_cycle(96e9, 2, 3e9) == 16);   // AVX2: 2 pipes x 4 doubles x 2, as Zen 4 does with AVX-512 too
static_assert(flop_per_cycle(192e9, 2, 3e9) == 32);  // AVX-512 with two 512-bit pipes: Intel server parts, Zen 5

/// The attainable peak of a crew, measured in short bursts on all its threads at once, in CPU time: anything that holds
/// a thread off its CPU does not make the peak look lower, and the work that is compared with it better.
class FmaPeak {
 public:
  /// Chooses the kernel and calibrates a burst.
  FmaPeak(PinnedThreads& crew, bool is_double);
  /// FLOP/s of one burst, about 20 ms of CPU time.
  double burst();
  /// The instruction set in use.
  [[nodiscard]] std::string_view isa() const { return kernel_.isa; }

 private:
  Seconds run(std::uint64_t rounds);
  PinnedThreads& crew_;
  FmaKernel kernel_;
  std::uint64_t rounds_ = 1;
};

/// The core clock in Hz as every thread of `crew` sees it at once while it runs, lowest of all: a chain of dependent
/// integer additions, one cycle each on every current core. Takes about 20 ms.
double clock_seen(PinnedThreads& crew);

}  // namespace assay::host
