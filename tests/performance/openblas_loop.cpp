// openblas_loop: the plainest use of OpenBLAS, with the library's own threads and Google Benchmark's timing, as the
// yardstick of host_gemm. Prints the median or the best rate in FLOP/s.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>
#include <cblas.h>

#include "probes/core/statistics.h"

namespace {

/// Keeps the wall time of every repetition and prints nothing.
class Times : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration) seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }
  std::vector<double> seconds;
};

template <class Real>
double rate(std::size_t n, int threads, int repetitions, bool best) {
  std::mt19937_64 random(1);
  std::normal_distribution<Real> gaussian;
  std::vector<Real> a(n * n), b(n * n), c(n * n);
  for (auto& x : a) x = gaussian(random);
  for (auto& x : b) x = gaussian(random);
  openblas_set_num_threads(threads);
  const auto k = static_cast<blasint>(n);
  const auto multiply = [&](benchmark::State& state) {
    for (auto _ : state) {
      if constexpr (std::is_same_v<Real, double>) {
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, k, k, k, 1, a.data(), k, b.data(), k, 0, c.data(), k);
      } else {
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, k, k, k, 1, a.data(), k, b.data(), k, 0, c.data(), k);
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
  if (argc != 6) {
    std::cerr << "usage: openblas_loop fp64|fp32 SIZE THREADS REPETITIONS median|best\nExample: openblas_loop fp64 4096 2 12 median\n";
    return 2;
  }
  const std::string type = argv[1];
  const auto n = static_cast<std::size_t>(std::stoul(argv[2]));
  const int threads = std::stoi(argv[3]);
  const int repetitions = std::stoi(argv[4]);
  const bool best = std::string(argv[5]) == "best";
  if (n == 0 || repetitions < 3) return 2;
  std::cout.precision(10);
  std::cout << (type == "fp32" ? rate<float>(n, threads, repetitions, best) : rate<double>(n, threads, repetitions, best)) << '\n';
  return 0;
}
