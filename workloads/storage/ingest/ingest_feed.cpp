// ingest_feed: readers advance a counter for each step, for which the accelerator waits; a stop ends all waits.
#include "workloads/storage/ingest/ingest_feed.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "probes/core/probe.h"

namespace assay::cluster_storage {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(100);  // the longest a stop goes unnoticed
using FeedClock = std::chrono::steady_clock;

double between(FeedClock::time_point from, FeedClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void IngestFeed::check() const {
  if (stop_requested()) throw std::runtime_error("stopped by a signal");
  if (abandoned_) throw std::runtime_error("given up, since the group has ended");
}

template <class Condition>
void IngestFeed::wait_until(std::unique_lock<std::mutex>& lock, Condition condition) {
  while (!condition()) {
    check();
    changed_.wait_for(lock, kSlice);
  }
}

std::optional<std::uint64_t> IngestFeed::next() {
  std::unique_lock lock(mutex_);
  check();
  if (taken_ == samples_) return std::nullopt;
  const std::uint64_t place = taken_++;
  wait_until(lock, [&] { return place / batch_ <= step_ + ahead_; });
  return place;
}

void IngestFeed::ready(std::uint64_t place) {
  const std::scoped_lock lock(mutex_);
  ++read_of_step_[place / batch_];
  changed_.notify_all();
}

void IngestFeed::wait_for(std::uint64_t step) {
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return read_of_step_[step] == batch_; });
  step_ = step + 1;
  changed_.notify_all();
}

IngestTimes IngestFeed::run(double compute_s, double starved_after_s) {
  IngestTimes times;
  auto ended = FeedClock::now();
  for (std::uint64_t step = 0; step < samples_ / batch_; ++step) {
    wait_for(step);
    const auto begun = FeedClock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(compute_s));
    const double waited_s = between(ended, begun);
    ended = FeedClock::now();
    if (step == 0) continue;  // nothing could have been read ahead of it
    times.waited_s += waited_s;
    times.computed_s += between(begun, ended);
    if (waited_s > starved_after_s) ++times.starved_steps;
  }
  return times;
}

}  // namespace assay::cluster_storage
