// concurrent_work: runs the threads, collects their times, and throws a failure of one on.
#include "workloads/storage/shared/concurrent_work.h"

#include <exception>
#include <semaphore>
#include <thread>

namespace assay::cluster_storage {

std::vector<double> run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<bool> never = false;
  return run_concurrently(count, work, nullptr, never);
}

std::vector<double> run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work,
                                     const std::function<void()>& watch, std::atomic<bool>& give_up) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  std::vector<double> times_s(count);
  std::vector<std::exception_ptr> failures(count);
  std::exception_ptr seen;
  std::counting_semaphore<> ended(0);
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < count; ++number) {
      threads.emplace_back([&, number] {
        try {
          work(number);
        } catch (...) {
          failures[number] = std::current_exception();
        }
        times_s[number] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        ended.release();
      });
    }
    for (std::size_t left = watch ? count : 0; left > 0 && !seen;) {
      if (ended.try_acquire_for(kLook)) {
        --left;
        continue;
      }
      try {
        watch();
      } catch (...) {
        seen = std::current_exception();
        give_up = true;
      }
    }
  }
  for (const auto& failure : failures) {
    if (failure && !seen) std::rethrow_exception(failure);
  }
  if (seen) std::rethrow_exception(seen);
  return times_s;
}

}  // namespace assay::cluster_storage
