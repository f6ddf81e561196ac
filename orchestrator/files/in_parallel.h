// in_parallel: independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace assay::files {

/// The threads that work on records when nothing else is asked for: one for each processor. The largest record takes
/// some 200 MB while it is read, so that there is a bound.
inline unsigned usual_threads() {
  constexpr unsigned kMost = 8;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

/// Calls `work(thread, i)` once for each `i` below `count`, on `threads` threads numbered from 0, of which the caller
/// is the first; each takes the next `i` when it is free. What `work` leaves for an `i` must depend on nothing that it
/// leaves for another one. Of the exceptions of `work` that of the smallest `i` is thrown again, when all have ended.
template <class Work>
void in_parallel(std::size_t count, unsigned threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::pair<std::size_t, std::exception_ptr> failed{count, nullptr};
  const auto take = [&](unsigned thread) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(thread, i);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (i < failed.first) failed = {i, std::current_exception()};
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned thread = 1; thread < std::min<std::size_t>(threads, count); ++thread)
      helpers.emplace_back(take, thread);
    take(0);
  }
  if (failed.second) std::rethrow_exception(failed.second);
}

}  // namespace assay::files
