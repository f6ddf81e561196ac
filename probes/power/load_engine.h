// load_engine: threads that multiply matrices at a share of their time, so that power follows a level.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace assay {

/// Threads of this machine that multiply matrices of normal numbers. At level x the first x of them work all the time
/// and one more for the rest of x, in slices that are short beside what meters average over; the others sleep.
class LoadEngine {
 public:
  /// Starts `threads` threads, which sleep. Every thread has operands of its own, of order `order`.
  LoadEngine(std::size_t threads, std::size_t order);
  LoadEngine(const LoadEngine&) = delete;
  LoadEngine& operator=(const LoadEngine&) = delete;
  /// Ends the threads within one product.
  ~LoadEngine();

  /// Works at `level`, 0 to 1, from now on.
  void work_at(double level);
  /// Floating-point operations so far, of all threads.
  [[nodiscard]] double flop() const;
  /// Returns when the threads that work_at() has woken have begun, or after 10 ms.
  void wait_until_begun() const;
  [[nodiscard]] std::size_t size() const { return workers_.size(); }

 private:
  void live(std::size_t thread, std::size_t order);

  std::atomic<double> level_{0};
  std::atomic<std::uint32_t> change_{0};  ///< sleepers wait for it
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> ready_{0};
  std::vector<std::atomic<std::uint64_t>> products_;  ///< begun, of each thread
  double flop_of_product_;
  std::vector<std::jthread> workers_;
};

}  // namespace assay
