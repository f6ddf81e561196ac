// stream: intrinsics for each instruction set, chosen at run time. A compiler would turn the plain loops into memcpy or
// ordinary stores as it sees fit, and the number would depend on it.
#include "probes/host/stream.h"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay {
namespace {

/// Where a kernel reads and writes; copy and scale have one input.
struct Operands {
  double* target;
  const double* first;
  const double* second;
};

Operands operands(StreamKernel kernel, const StreamArrays& arrays) {
  switch (kernel) {
    case StreamKernel::copy: return {arrays.c.data(), arrays.a.data(), nullptr};
    case StreamKernel::scale: return {arrays.b.data(), arrays.c.data(), nullptr};
    case StreamKernel::add: return {arrays.c.data(), arrays.a.data(), arrays.b.data()};
    case StreamKernel::triad: break;
  }
  return {arrays.a.data(), arrays.b.data(), arrays.c.data()};
}

#if defined(__x86_64__)
template <StreamKernel kernel, Stores stores>
[[gnu::target("avx512f")]] void avx512(const Operands& at, std::size_t count) {
  const __m512d scalar = _mm512_set1_pd(kStreamScalar);
  for (std::size_t i = 0; i < count; i += 8) {
    __m512d x = _mm512_load_pd(at.first + i);
    if constexpr (kernel == StreamKernel::scale) x = _mm512_mul_pd(scalar, x);
    if constexpr (kernel == StreamKernel::add) x = _mm512_add_pd(x, _mm512_load_pd(at.second + i));
    if constexpr (kernel == StreamKernel::triad) x = _mm512_add_pd(x, _mm512_mul_pd(scalar, _mm512_load_pd(at.second + i)));
    stores == Stores::non_temporal ? _mm512_stream_pd(at.target + i, x) : _mm512_store_pd(at.target + i, x);
  }
  if constexpr (stores == Stores::non_temporal) _mm_sfence();  // the pass ends when its stores are on their way
}

template <StreamKernel kernel, Stores stores>
[[gnu::target("avx2")]] void avx2(const Operands& at, std::size_t count) {
  const __m256d scalar = _mm256_set1_pd(kStreamScalar);
  for (std::size_t i = 0; i < count; i += 4) {
    __m256d x = _mm256_load_pd(at.first + i);
    if constexpr (kernel == StreamKernel::scale) x = _mm256_mul_pd(scalar, x);
    if constexpr (kernel == StreamKernel::add) x = _mm256_add_pd(x, _mm256_load_pd(at.second + i));
    if constexpr (kernel == StreamKernel::triad) x = _mm256_add_pd(x, _mm256_mul_pd(scalar, _mm256_load_pd(at.second + i)));
    stores == Stores::non_temporal ? _mm256_stream_pd(at.target + i, x) : _mm256_store_pd(at.target + i, x);
  }
  if constexpr (stores == Stores::non_temporal) _mm_sfence();
}

template <StreamKernel kernel, Stores stores>
void sse2(const Operands& at, std::size_t count) {
  const __m128d scalar = _mm_set1_pd(kStreamScalar);
  for (std::size_t i = 0; i < count; i += 2) {
    __m128d x = _mm_load_pd(at.first + i);
    if constexpr (kernel == StreamKernel::scale) x = _mm_mul_pd(scalar, x);
    if constexpr (kernel == StreamKernel::add) x = _mm_add_pd(x, _mm_load_pd(at.second + i));
    if constexpr (kernel == StreamKernel::triad) x = _mm_add_pd(x, _mm_mul_pd(scalar, _mm_load_pd(at.second + i)));
    stores == Stores::non_temporal ? _mm_stream_pd(at.target + i, x) : _mm_store_pd(at.target + i, x);
  }
  if constexpr (stores == Stores::non_temporal) _mm_sfence();
}

/// The instruction sets as something a template can take.
struct Avx512 {
  template <StreamKernel kernel, Stores stores>
  static void run(const Operands& at, std::size_t count) { avx512<kernel, stores>(at, count); }
};
struct Avx2 {
  template <StreamKernel kernel, Stores stores>
  static void run(const Operands& at, std::size_t count) { avx2<kernel, stores>(at, count); }
};
struct Sse2 {
  template <StreamKernel kernel, Stores stores>
  static void run(const Operands& at, std::size_t count) { sse2<kernel, stores>(at, count); }
};
#else
/// Plain loops where there are no intrinsics of ours.
struct Portable {
  template <StreamKernel kernel, Stores stores>
  static void run(const Operands& at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      double x = at.first[i];
      if constexpr (kernel == StreamKernel::scale) x = kStreamScalar * x;
      if constexpr (kernel == StreamKernel::add) x = x + at.second[i];
      if constexpr (kernel == StreamKernel::triad) x = x + kStreamScalar * at.second[i];
      at.target[i] = x;
    }
  }
};
#endif

template <class Isa, Stores stores>
void pass(StreamKernel kernel, const StreamArrays& arrays) {
  const Operands at = operands(kernel, arrays);
  const std::size_t count = arrays.a.size();
  switch (kernel) {
    case StreamKernel::copy: return Isa::template run<StreamKernel::copy, stores>(at, count);
    case StreamKernel::scale: return Isa::template run<StreamKernel::scale, stores>(at, count);
    case StreamKernel::add: return Isa::template run<StreamKernel::add, stores>(at, count);
    case StreamKernel::triad: return Isa::template run<StreamKernel::triad, stores>(at, count);
  }
}

template <class Isa>
StreamCode code(std::string_view isa, Stores stores) {
  return {.isa = isa, .stores = stores,
          .pass = stores == Stores::non_temporal ? pass<Isa, Stores::non_temporal> : pass<Isa, Stores::regular>};
}

std::uint64_t wrong(std::span<const double> values, double expected) {
  constexpr double kEpsilon = 1e-13;  // STREAM 5.10 for 8-byte elements
  return static_cast<std::uint64_t>(std::ranges::count_if(
      values, [&](double value) { return !(std::abs(value - expected) <= kEpsilon * std::abs(expected)); }));
}

}  // namespace

StreamCode stream_code(Stores stores) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return code<Avx512>("avx512f", stores);
  if (__builtin_cpu_supports("avx2")) return code<Avx2>("avx2", stores);
  return code<Sse2>("sse2", stores);
#else
  (void)stores;  // there are none but regular ones here, and the result says so
  return code<Portable>("portable", Stores::regular);
#endif
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

}  // namespace assay
