// fma_peak: multiply-add chains in registers, and the dependent additions that show the clock.
#include "probes/host/fma_peak.h"

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "probes/host/timing.h"

namespace assay::host {
namespace {

constexpr Seconds kBurst = {0.02};  // long against the barriers (about 20 us), short against one matrix product

// Latency 4 on 2 pipes needs at least 8 chains in flight, latency 5 ten; twelve leave registers for the constants where
// there are sixteen. The factor below 1 keeps every chain at its fixed point: no overflow, no denormals.
constexpr int kChains = 12;
constexpr double kFactor = 0.5;
constexpr double kAddend = 0.75;

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void avx512_double(std::uint64_t rounds) {
  const __m512d factor = _mm512_set1_pd(kFactor), addend = _mm512_set1_pd(kAddend);
  __m512d x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = _mm512_set1_pd(i);
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = _mm512_fmadd_pd(x[i], factor, addend);
  }
  keep(x);
}

[[gnu::target("avx512f")]] void avx512_float(std::uint64_t rounds) {
  const __m512 factor = _mm512_set1_ps(kFactor), addend = _mm512_set1_ps(kAddend);
  __m512 x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = _mm512_fmadd_ps(x[i], factor, addend);
  }
  keep(x);
}

[[gnu::target("avx2,fma")]] void avx2_double(std::uint64_t rounds) {
  const __m256d factor = _mm256_set1_pd(kFactor), addend = _mm256_set1_pd(kAddend);
  __m256d x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = _mm256_set1_pd(i);
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = _mm256_fmadd_pd(x[i], factor, addend);
  }
  keep(x);
}

[[gnu::target("avx2,fma")]] void avx2_float(std::uint64_t rounds) {
  const __m256 factor = _mm256_set1_ps(kFactor), addend = _mm256_set1_ps(kAddend);
  __m256 x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = _mm256_set1_ps(static_cast<float>(i));
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = _mm256_fmadd_ps(x[i], factor, addend);
  }
  keep(x);
}
#endif

/// The compiler's own vectors; this file is compiled with -ffp-contract=fast, so that Arm uses its fused instruction.
template <class Real>
void portable(std::uint64_t rounds) {
  typedef Real Vector [[gnu::vector_size(16)]];
  const Vector factor = Vector{} + static_cast<Real>(kFactor), addend = Vector{} + static_cast<Real>(kAddend);
  Vector x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = Vector{} + static_cast<Real>(i);
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * factor + addend;
  }
  keep(x);
}

/// FLOPs of a round of vectors with `lanes` elements.
constexpr double flop_per_round(int lanes) { return 2.0 * kChains * lanes; }

/// `count` additions that each need the result of the one before. Register to register: a core may fold an addition of
/// a constant into register renaming, and then shows more than one a cycle.
void dependent_additions(std::uint64_t count) {
  constexpr std::uint64_t kUnroll = 16;
  std::uint64_t sum = count;
  const std::uint64_t step = count | 1;
  for (std::uint64_t i = 0; i < count; i += kUnroll) {
#pragma GCC unroll 16
    for (std::uint64_t k = 0; k < kUnroll; ++k) {
#if defined(__x86_64__)
      asm volatile("add %1, %0" : "+r"(sum) : "r"(step));
#elif defined(__aarch64__)
      asm volatile("add %0, %0, %1" : "+r"(sum) : "r"(step));
#else
#error "name this processor's register addition"
#endif
    }
  }
}

}  // namespace

FmaKernel fma_kernel(bool is_double) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return is_double ? FmaKernel{.isa = "avx512f", .flop_per_round = flop_per_round(8), .run = avx512_double}
                     : FmaKernel{.isa = "avx512f", .flop_per_round = flop_per_round(16), .run = avx512_float};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return is_double ? FmaKernel{.isa = "avx2_fma", .flop_per_round = flop_per_round(4), .run = avx2_double}
                     : FmaKernel{.isa = "avx2_fma", .flop_per_round = flop_per_round(8), .run = avx2_float};
  }
#endif
  return is_double ? FmaKernel{.isa = "portable", .flop_per_round = flop_per_round(2), .run = portable<double>}
                   : FmaKernel{.isa = "portable", .flop_per_round = flop_per_round(4), .run = portable<float>};
}

FmaPeak::FmaPeak(PinnedThreads& crew, bool is_double) : crew_(crew), kernel_(fma_kernel(is_double)) {
  rounds_ = rounds_for(kBurst, [this](std::uint64_t rounds) { return run(rounds); });
}

double FmaPeak::burst() { return fma_rate(kernel_, crew_.size(), rounds_, run(rounds_)); }

Seconds FmaPeak::run(std::uint64_t rounds) {
  crew_.run([&](std::size_t) { kernel_.run(rounds); });
  return crew_.cpu_time();
}

double clock_seen(PinnedThreads& crew) {
  constexpr std::uint64_t kAdditions = 60'000'000;  // 20 ms at 3 GHz
  std::vector<double> hz(crew.size());
  crew.run([&](std::size_t thread) {
    const Seconds begin = thread_cpu_time();
    dependent_additions(kAdditions);
    hz[thread] = static_cast<double>(kAdditions) / (thread_cpu_time().count - begin.count);
  });
  return *std::ranges::min_element(hz);
}

}  // namespace assay::host
