// pinned_threads: threads that are each pinned to one CPU, start together and are timed from the first to the last.
#pragma once

#include <barrier>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "probes/core/units.h"

namespace assay::host {

/// One pinned thread for each of some CPUs, kept for the life of the crew so that first touch and work happen on the
/// same CPU. Waits inside have no deadline of their own: they end with the work, and the probe's deadline bounds that.
class PinnedThreads {
 public:
  /// Starts and pins the threads. `cpus` must be distinct and not empty. Throws std::runtime_error when the kernel
  /// refuses one of them, naming it.
  explicit PinnedThreads(std::vector<int> cpus);
  ~PinnedThreads();
  PinnedThreads(const PinnedThreads&) = delete;
  PinnedThreads& operator=(const PinnedThreads&) = delete;

  /// Runs work(thread) for thread 0 … size() - 1 at once. Returns the wall time from the moment every thread was ready
  /// until the last was done. Rethrows the error of the first failing thread, after all have ended.
  Seconds run(const std::function<void(std::size_t)>& work);

  /// Number of threads.
  [[nodiscard]] std::size_t size() const { return cpus_.size(); }
  /// The CPU of each thread.
  [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }
  /// Whether the kernel says, asked by every thread itself, that each may run on its own CPU only and is there.
  [[nodiscard]] bool pinned();
  /// Share of its working time, 0..1, in which a thread did not run, of the thread for which it is largest: the effect
  /// of a CPU quota (cgroup cpu.max), a hypervisor or other processes took. Over all calls of run() so far.
  [[nodiscard]] double off_cpu_share() const;
  /// CPU time of the last run(), of the thread that used most: time of the work while it ran, without delays.
  [[nodiscard]] Seconds cpu_time() const { return cpu_time_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// Time of one thread on work.
  struct Spent {
    double wall_s = 0, cpu_s = 0, last_cpu_s = 0;
  };
  struct Stamp {
    Clock::time_point* moment;
    void operator()() noexcept { *moment = Clock::now(); }
  };

  void live(std::size_t thread);
  void work_on(std::size_t thread);
  void note_failure();

  std::vector<int> cpus_;
  Seconds cpu_time_ = {};
  std::vector<Spent> spent_;  ///< each thread writes its own between ready_ and done_
  Clock::time_point begin_, end_;
  std::barrier<> gate_;                                     ///< the crew and its owner: work is there, work is done
  std::barrier<Stamp> ready_;                               ///< the crew: stamps begin_ before it lets the threads go
  std::barrier<Stamp> done_;                                ///< the crew: stamps end_ when the last has arrived
  const std::function<void(std::size_t)>* work_ = nullptr;  ///< nullptr ends the threads
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

/// CPU time of the calling thread since it started.
Seconds thread_cpu_time();

/// One CPU for each of `threads` threads, on cores of their own; 0 asks for every physical core this process may use.
/// Throws std::runtime_error when there are fewer cores than threads.
std::vector<int> cpus_for(std::int64_t threads);

/// "0-3,8,10-11": `cpus`, which must be ascending, as the kernel writes such lists.
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace assay::host
