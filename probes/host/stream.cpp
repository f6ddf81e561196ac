// stream: plain loops where STREAM's own are meant, intrinsics where stores must bypass the caches.
#include "probes/host/stream.h"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay::host {
namespace {

/// Where a kernel reads and writes; copy and scale have one input.
struct Operands {
  double* target;
  const double* first;
  const double* second;
};

Operands operands(StreamKernel kernel, const StreamArrays& arrays) {
  switch (kernel) {
    case StreamKernel::copy:
      return {arrays.c.data(), arrays.a.data(), nullptr};
    case StreamKernel::scale:
      return {arrays.b.data(), arrays.c.data(), nullptr};
    case StreamKernel::add:
      return {arrays.c.data(), arrays.a.data(), arrays.b.data()};
    case StreamKernel::triad:
      break;
  }
  return {arrays.a.data(), arrays.b.data(), arrays.c.data()};
}

/// Regular stores: the loops as STREAM has them, vectorised as the compiler sees fit (-O3, see CMakeLists.txt).
struct Loop {
  static constexpr std::string_view kIsa = "compiler";
  template <StreamKernel kernel>
  static void run(const Operands& at, std::size_t count) {
    double* const target = at.target;
    const double* const first = at.first;
    const double* const second = at.second;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (kernel == StreamKernel::copy) target[i] = first[i];
      if constexpr (kernel == StreamKernel::scale) target[i] = kStreamScalar * first[i];
      if constexpr (kernel == StreamKernel::add) target[i] = first[i] + second[i];
      if constexpr (kernel == StreamKernel::triad) target[i] = first[i] + kStreamScalar * second[i];
    }
  }
};

#if defined(__x86_64__)
/// Non-temporal stores, which a compiler never chooses, for each instruction set.
struct Avx512 {
  static constexpr std::string_view kIsa = "avx512f";
  template <StreamKernel kernel>
  [[gnu::target("avx512f")]] static void run(const Operands& at, std::size_t count) {
    const __m512d scalar = _mm512_set1_pd(kStreamScalar);
    for (std::size_t i = 0; i < count; i += 8) {
      __m512d x = _mm512_load_pd(at.first + i);
      if constexpr (kernel == StreamKernel::scale) x = _mm512_mul_pd(scalar, x);
      if constexpr (kernel == StreamKernel::add) x = _mm512_add_pd(x, _mm512_load_pd(at.second + i));
      if constexpr (kernel == StreamKernel::triad)
        x = _mm512_add_pd(x, _mm512_mul_pd(scalar, _mm512_load_pd(at.second + i)));
      _mm512_stream_pd(at.target + i, x);
    }
    _mm_sfence();  // the pass ends when its stores are on their way
  }
};

struct Avx2 {
  static constexpr std::string_view kIsa = "avx2";
  template <StreamKernel kernel>
  [[gnu::target("avx2")]] static void run(const Operands& at, std::size_t count) {
    const __m256d scalar = _mm256_set1_pd(kStreamScalar);
    for (std::size_t i = 0; i < count; i += 4) {
      __m256d x = _mm256_load_pd(at.first + i);
      if constexpr (kernel == StreamKernel::scale) x = _mm256_mul_pd(scalar, x);
      if constexpr (kernel == StreamKernel::add) x = _mm256_add_pd(x, _mm256_load_pd(at.second + i));
      if constexpr (kernel == StreamKernel::triad)
        x = _mm256_add_pd(x, _mm256_mul_pd(scalar, _mm256_load_pd(at.second + i)));
      _mm256_stream_pd(at.target + i, x);
    }
    _mm_sfence();
  }
};

struct Sse2 {
  static constexpr std::string_view kIsa = "sse2";
  template <StreamKernel kernel>
  static void run(const Operands& at, std::size_t count) {
    const __m128d scalar = _mm_set1_pd(kStreamScalar);
    for (std::size_t i = 0; i < count; i += 2) {
      __m128d x = _mm_load_pd(at.first + i);
      if constexpr (kernel == StreamKernel::scale) x = _mm_mul_pd(scalar, x);
      if constexpr (kernel == StreamKernel::add) x = _mm_add_pd(x, _mm_load_pd(at.second + i));
      if constexpr (kernel == StreamKernel::triad) x = _mm_add_pd(x, _mm_mul_pd(scalar, _mm_load_pd(at.second + i)));
      _mm_stream_pd(at.target + i, x);
    }
    _mm_sfence();
  }
};
#endif

template <class Isa>
void pass(StreamKernel kernel, const StreamArrays& arrays) {
  const Operands at = operands(kernel, arrays);
  const std::size_t count = arrays.a.size();
  switch (kernel) {
    case StreamKernel::copy:
      return Isa::template run<StreamKernel::copy>(at, count);
    case StreamKernel::scale:
      return Isa::template run<StreamKernel::scale>(at, count);
    case StreamKernel::add:
      return Isa::template run<StreamKernel::add>(at, count);
    case StreamKernel::triad:
      return Isa::template run<StreamKernel::triad>(at, count);
  }
}

template <class Isa>
StreamCode code(Stores stores) {
  return {.isa = Isa::kIsa, .stores = stores, .pass = pass<Isa>};
}

std::uint64_t wrong(std::span<const double> values, double expected) {
  constexpr double kEpsilon = 1e-13;  // STREAM 5.10 for 8-byte elements
  return static_cast<std::uint64_t>(std::ranges::count_if(
      values, [&](double value) { return !(std::abs(value - expected) <= kEpsilon * std::abs(expected)); }));
}

}  // namespace

StreamCode stream_code(Stores stores) {
#if defined(__x86_64__)
  if (stores == Stores::non_temporal) {
    if (__builtin_cpu_supports("avx512f")) return code<Avx512>(stores);
    if (__builtin_cpu_supports("avx2")) return code<Avx2>(stores);
    return code<Sse2>(stores);
  }
#else
  (void)stores;  // there are none but regular ones here, and the result says so
#endif
  return code<Loop>(Stores::regular);
}

std::uint64_t stream_read(std::span<const std::uint64_t> values) {
  std::uint64_t all = 0;
  for (const std::uint64_t value : values) all ^= value;
  return all;
}

void stream_fill(const StreamArrays& arrays) {
  std::ranges::fill(arrays.a, 1.0);
  std::ranges::fill(arrays.b, 2.0);
  std::ranges::fill(arrays.c, 0.0);
}

std::uint64_t stream_mismatches(const StreamArrays& arrays, std::size_t rounds) {
  double a = 1, b = 2, c = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    c = a;
    b = kStreamScalar * c;
    c = a + b;
    a = b + kStreamScalar * c;
  }
  return wrong(arrays.a, a) + wrong(arrays.b, b) + wrong(arrays.c, c);
}

}  // namespace assay::host
