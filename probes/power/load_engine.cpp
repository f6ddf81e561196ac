// load_engine: cblas_dgemm on every thread, with a duty of one of them.
#include "probes/power/load_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <cblas.h>

#include "probes/host/gaussian.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPeriod_s = 0.01;  // of the thread that works for a part: a meter of 25 ms sees its mean
constexpr auto kLongestBegin = std::chrono::milliseconds(10);

/// The share of its time that `thread` of `threads` works at `level`.
double duty_of(double level, std::size_t thread, std::size_t threads) {
  return std::clamp(level * static_cast<double>(threads) - static_cast<double>(thread), 0.0, 1.0);
}

}  // namespace

LoadEngine::LoadEngine(std::size_t threads, std::size_t order)
    : products_(threads), flop_of_product_(2.0 * std::pow(static_cast<double>(order), 3)) {
  openblas_set_num_threads(1);
  for (std::size_t i = 0; i < threads; ++i) workers_.emplace_back([this, i, order] { live(i, order); });
  while (ready_.load() < threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // operands are filled
}

LoadEngine::~LoadEngine() {
  over_ = true;
  work_at(0);
}

void LoadEngine::work_at(double level) {
  if (level_.exchange(level) == level && !over_) return;
  ++change_;
  change_.notify_all();
}

double LoadEngine::flop() const {
  double all = 0;
  for (const auto& one : products_) all += static_cast<double>(one.load(std::memory_order_relaxed));
  return all * flop_of_product_;
}

void LoadEngine::wait_until_begun() const {
  const auto limit = Clock::now() + kLongestBegin;
  const double level = level_.load();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (duty_of(level, i, workers_.size()) <= 0) continue;
    while (products_[i].load() == 0 && Clock::now() < limit) std::this_thread::yield();
  }
}

void LoadEngine::live(std::size_t thread, std::size_t order) {
  const std::size_t elements = order * order;
  std::vector<double> a(elements), b(elements), c(elements);
  fill_gaussian<double>(a, 2 * thread + 1);
  fill_gaussian<double>(b, 2 * thread + 2);
  const auto n = static_cast<blasint>(order);
  const auto product = [&] {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  };
  product();  // the library's buffers are made here, not at the start of the load
  ++ready_;
  const std::chrono::duration<double> period(kPeriod_s);
  while (!over_.load()) {
    const std::uint32_t seen = change_.load();
    const double duty = duty_of(level_.load(), thread, products_.size());
    if (duty <= 0) {
      if (!over_.load()) change_.wait(seen);
      continue;
    }
    const auto begin = Clock::now();
    do {
      products_[thread].fetch_add(1, std::memory_order_relaxed);
      product();
    } while (Clock::now() - begin < duty * period);
    if (duty < 1) std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(period));
  }
}

}  // namespace assay
