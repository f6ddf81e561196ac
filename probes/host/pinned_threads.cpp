// pinned_threads: pinned threads over three barriers.
#include "probes/host/pinned_threads.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <fmt/format.h>

#include "probes/core/host_facts.h"

namespace assay::host {
namespace {

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set); error != 0) {
    throw std::runtime_error(
        fmt::format("cannot pin a thread to CPU {}: error {}; check the cpuset of this process", cpu, error));
  }
}

bool is_pinned_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0) return false;
  return CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set) && sched_getcpu() == cpu;
}

}  // namespace

PinnedThreads::PinnedThreads(std::vector<int> cpus)
    : cpus_(std::move(cpus)),
      spent_(cpus_.size()),
      gate_(static_cast<std::ptrdiff_t>(cpus_.size() + 1)),
      ready_(static_cast<std::ptrdiff_t>(cpus_.size()), Stamp{&begin_}),
      done_(static_cast<std::ptrdiff_t>(cpus_.size()), Stamp{&end_}) {
  try {
    for (std::size_t thread = 0; thread < cpus_.size(); ++thread)
      threads_.emplace_back([this, thread] { live(thread); });
    run([this](std::size_t thread) { pin_this_thread(cpus_[thread]); });
  } catch (...) {
    // The destructor does not run for an object that was never made: let the threads that did start go, standing in at
    // the gate for those that did not.
    work_ = nullptr;
    (void)gate_.arrive(
        static_cast<std::ptrdiff_t>(1 + cpus_.size() - threads_.size()));  // no thread waits for this phase
    throw;
  }
}

PinnedThreads::~PinnedThreads() {
  work_ = nullptr;
  gate_.arrive_and_wait();
}

Seconds PinnedThreads::run(const std::function<void(std::size_t)>& work) {
  work_ = &work;
  failure_ = nullptr;
  gate_.arrive_and_wait();
  gate_.arrive_and_wait();
  cpu_time_ = {std::ranges::max(spent_, {}, &Spent::last_cpu_s).last_cpu_s};
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return {std::chrono::duration<double>(end_ - begin_).count()};
}

bool PinnedThreads::pinned() {
  std::atomic<std::size_t> count = 0;
  run([&](std::size_t thread) {
    if (is_pinned_to(cpus_[thread])) ++count;
  });
  return count == size();
}

void PinnedThreads::live(std::size_t thread) {
  while (true) {
    gate_.arrive_and_wait();
    if (work_ == nullptr) return;
    ready_.arrive_and_wait();
    work_on(thread);
    done_.arrive_and_wait();
    gate_.arrive_and_wait();
  }
}

void PinnedThreads::work_on(std::size_t thread) {
  const auto begin = Clock::now();
  const Seconds begin_cpu = thread_cpu_time();
  try {
    (*work_)(thread);
  } catch (...) {
    note_failure();
  }
  spent_[thread].last_cpu_s = thread_cpu_time().count - begin_cpu.count;
  spent_[thread].cpu_s += spent_[thread].last_cpu_s;
  spent_[thread].wall_s += std::chrono::duration<double>(Clock::now() - begin).count();
}

double PinnedThreads::off_cpu_share() const {
  double largest = 0;
  for (const Spent& spent : spent_) {
    if (spent.wall_s > 0) largest = std::max(largest, 1 - spent.cpu_s / spent.wall_s);
  }
  return largest;
}

void PinnedThreads::note_failure() {
  const std::scoped_lock lock(failure_mutex_);
  if (!failure_) failure_ = std::current_exception();
}

Seconds thread_cpu_time() {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
    throw std::runtime_error("the kernel does not report the CPU time of a thread");
  return {static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9};
}

std::vector<int> cpus_for(std::int64_t threads) {
  auto cpus = one_cpu_per_core();
  if (cpus.empty()) throw std::runtime_error("the kernel names no CPU that this process may run on");
  if (threads == 0) return cpus;
  if (threads < 0 || static_cast<std::size_t>(threads) > cpus.size()) {
    throw std::runtime_error(
        fmt::format("{} threads do not fit the {} physical cores this process may use; give 0 for one on each", threads,
                    cpus.size()));
  }
  cpus.resize(static_cast<std::size_t>(threads));
  return cpus;
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace assay::host
