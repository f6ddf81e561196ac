// openblas_loop: the plainest uses of OpenBLAS, timed by Google Benchmark, as the yardsticks of host_gemm: with the
// library's own threads, or one pinned thread for each block of columns. Prints the median or the best rate in FLOP/s.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>
#include <cblas.h>
#include <sched.h>
#include <sys/mman.h>

#include "probes/core/statistics.h"

namespace {

/// Keeps the wall time of every repetition and prints nothing.
class Times : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration)
        seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }
  std::vector<double> seconds;
};

/// C = A B of column-major matrices with m rows; B and C have `columns` columns.
template <class Real>
void product(blasint m, blasint columns, const Real* a, const Real* b, Real* c) {
  if constexpr (std::is_same_v<Real, double>) {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, columns, m, 1, a, m, b, m, 0, c, m);
  } else {
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, columns, m, 1, a, m, b, m, 0, c, m);
  }
}

/// Room on huge pages, as the probe's operands have, or the ratio would be that of page sizes.
template <class Real>
std::unique_ptr<Real, decltype(&std::free)> huge_pages(std::size_t elements) {
  constexpr std::size_t kPage = 2 << 20;
  const std::size_t bytes = (elements * sizeof(Real) + kPage - 1) / kPage * kPage;
  std::unique_ptr<Real, decltype(&std::free)> room(static_cast<Real*>(std::aligned_alloc(kPage, bytes)), &std::free);
  if (!room) std::abort();
  (void)madvise(room.get(), bytes, MADV_HUGEPAGE);  // advice may be refused
  return room;
}

void pin(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) std::abort();  // a yardstick on the wrong CPU misleads
}

template <class Real>
double rate(std::size_t n, int threads, bool pinned, int repetitions, bool best) {
  std::mt19937_64 random(1);
  std::normal_distribution<Real> gaussian;
  const auto matrix = [n] { return huge_pages<Real>(n * n); };
  const auto a = matrix(), b = matrix(), c = matrix();
  std::generate_n(a.get(), n * n, [&] { return gaussian(random); });
  std::generate_n(b.get(), n * n, [&] { return gaussian(random); });
  openblas_set_num_threads(pinned ? 1 : threads);
  const auto k = static_cast<blasint>(n);
  const auto multiply = [&](benchmark::State& state) {
    for (auto _ : state) {
      if (pinned) {
        std::vector<std::jthread> crew;
        for (int i = 0; i < threads; ++i) {
          crew.emplace_back([&, i] {
            pin(i);
            const blasint begin = k * i / threads, end = k * (i + 1) / threads;
            product(k, end - begin, a.get(), b.get() + n * static_cast<std::size_t>(begin),
                    c.get() + n * static_cast<std::size_t>(begin));
          });
        }
      } else {
        product(k, k, a.get(), b.get(), c.get());
      }
      benchmark::ClobberMemory();
    }
  };
  benchmark::RegisterBenchmark("gemm", multiply)->Iterations(1)->UseRealTime()->Repetitions(repetitions);
  Times times;
  benchmark::RunSpecifiedBenchmarks(&times);
  const double size = static_cast<double>(n);
  const auto seconds = std::span(times.seconds).subspan(2);  // the first two warm up
  return 2 * size * size * size / (best ? std::ranges::min(seconds) : assay::median(seconds));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::cerr << "usage: openblas_loop fp64|fp32 SIZE THREADS own|pinned REPETITIONS median|best\nExample: "
                 "openblas_loop fp64 4096 2 own 12 median\n";
    return 2;
  }
  const std::string type = argv[1];
  const auto n = static_cast<std::size_t>(std::stoul(argv[2]));
  const int threads = std::stoi(argv[3]);
  const bool pinned = std::string(argv[4]) == "pinned";
  const int repetitions = std::stoi(argv[5]);
  const bool best = std::string(argv[6]) == "best";
  if (n == 0 || threads < 1 || repetitions < 3) return 2;
  std::cout.precision(10);
  std::cout << (type == "fp32" ? rate<float>(n, threads, pinned, repetitions, best)
                               : rate<double>(n, threads, pinned, repetitions, best))
            << '\n';
  return 0;
}
