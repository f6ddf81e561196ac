// concurrent_work: the same work on several threads from one start.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace assay::cluster_storage {

/// Clock of the phases of a storage probe, and the time since `begin` on it, in s.
using PhaseClock = std::chrono::steady_clock;
inline double passed_since(PhaseClock::time_point begin) {
  return std::chrono::duration<double>(PhaseClock::now() - begin).count();
}

/// Runs `work(number)` for 0 to `count` - 1 on one thread each, all from one start; the seconds from that start to the
/// end of each. Joining is the barrier: every wait inside `work` must have a deadline. Rethrows the first failure, by
/// number, after all have ended.
std::vector<double> run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work);

/// The same while the calling thread calls `watch` every 100 ms. When that throws, `give_up` turns true, which `work`
/// must heed, and its error is rethrown after all have ended.
std::vector<double> run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work,
                                     const std::function<void()>& watch, std::atomic<bool>& give_up);

}  // namespace assay::cluster_storage
