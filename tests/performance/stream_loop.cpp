// stream_loop: STREAM's method as it is usually run, one OpenMP loop for each kernel, as the yardstick of
// host_memory_bandwidth. Prints the median or the best triad bandwidth in B/s.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <omp.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "probes/core/statistics.h"

namespace {

constexpr double kScalar = 0.42;             // as in host_memory_bandwidth
constexpr std::size_t kAlignment = 2 << 20;  // huge pages, and any vector's stores

/// The rounds of four kernels; returns the seconds of every triad.
std::vector<double> regular_rounds(double* a, double* b, double* c, std::ptrdiff_t n, int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; ++j) c[j] = a[j];
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; ++j) b[j] = kScalar * c[j];
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; ++j) c[j] = a[j] + b[j];
    const double begin = omp_get_wtime();
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; ++j) a[j] = b[j] + kScalar * c[j];
    times.push_back(omp_get_wtime() - begin);
  }
  return times;
}

#if defined(__x86_64__)
/// The same with 64-byte stores that bypass the caches, which GCC never chooses by itself.
[[gnu::target("avx512f")]] std::vector<double> non_temporal_rounds(double* a, double* b, double* c, std::ptrdiff_t n,
                                                                   int rounds) {
  std::vector<double> times;
  const __m512d scalar = _mm512_set1_pd(kScalar);
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; j += 8) _mm512_stream_pd(c + j, _mm512_load_pd(a + j));
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; j += 8) _mm512_stream_pd(b + j, _mm512_mul_pd(scalar, _mm512_load_pd(c + j)));
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; j += 8)
      _mm512_stream_pd(c + j, _mm512_add_pd(_mm512_load_pd(a + j), _mm512_load_pd(b + j)));
    const double begin = omp_get_wtime();
#pragma omp parallel for
    for (std::ptrdiff_t j = 0; j < n; j += 8) {
      _mm512_stream_pd(a + j, _mm512_add_pd(_mm512_load_pd(b + j), _mm512_mul_pd(scalar, _mm512_load_pd(c + j))));
    }
    times.push_back(omp_get_wtime() - begin);
  }
  return times;
}
#endif

/// The rounds with the stores that were asked for; nothing where this processor has no such stores of 64 bytes.
std::vector<double> rounds_with(const std::string& stores, double* a, double* b, double* c, std::ptrdiff_t n,
                                int rounds) {
  if (stores == "regular") return regular_rounds(a, b, c, n, rounds);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return non_temporal_rounds(a, b, c, n, rounds);
#endif
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: stream_loop ARRAY_BYTES regular|non_temporal huge|base ROUNDS median|best\n"
                 "Example: OMP_PROC_BIND=true stream_loop 134217728 non_temporal huge 30 median\n";
    return 2;
  }
  const std::size_t bytes = std::stoul(argv[1]) / kAlignment * kAlignment;
  const std::string stores = argv[2], pages = argv[3], statistic = argv[5];
  const int rounds = std::stoi(argv[4]);
  if (bytes == 0 || rounds < 3) return 2;
  std::vector<std::unique_ptr<double, decltype(&std::free)>> arrays;
  for (int i = 0; i < 3; ++i) {
    arrays.emplace_back(static_cast<double*>(std::aligned_alloc(kAlignment, bytes)), &std::free);
    if (arrays.back() == nullptr) return 1;
    (void)madvise(arrays.back().get(), bytes,
                  pages == "huge" ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // advice may be refused
  }
  double *a = arrays[0].get(), *b = arrays[1].get(), *c = arrays[2].get();
  const auto n = static_cast<std::ptrdiff_t>(bytes / sizeof(double));
#pragma omp parallel for
  for (std::ptrdiff_t j = 0; j < n; ++j) a[j] = 1, b[j] = 2, c[j] = 0;
  auto times = rounds_with(stores, a, b, c, n, rounds);
  if (times.empty()) {
    std::cerr << "stream_loop: this processor has no 64-byte non-temporal stores; compare with regular ones\n";
    return 1;
  }
  times.erase(times.begin());  // STREAM leaves out the first
  const double time = statistic == "best" ? std::ranges::min(times) : assay::median(times);
  std::cout.precision(10);
  std::cout << 3.0 * static_cast<double>(bytes) / time << '\n';
  return a[n / 2] > 0 ? 0 : 1;
}
