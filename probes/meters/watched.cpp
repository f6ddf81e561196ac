// watched: reads one meter in a thread of its own, so that a meter that does not answer delays no other.
#include "probes/meters/watched.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "probes/core/probe.h"

namespace assay::meters {
namespace {

constexpr int kMostDoublings = 6;  // of the wait after a fault: a minute at most

}  // namespace

void WatchedMeter::watch(double interval_s, bool (*stop)()) noexcept {
  MeterSession session;
  try {
    session = open_meter(meter_);
  } catch (const std::exception& error) {  // Skip and MeterFault, or no memory: the meter is not read
    const std::lock_guard guard(mutex_);
    history_.not_there = error.what();
    ended_ = true;
    return;
  }
  int faults_in_a_row = 0;
  while (!stop()) {
    const double begin_s = utc_now_s();
    std::vector<MeterReading> answer;
    std::string fault;
    try {
      answer = session();
    } catch (const std::exception& error) {
      fault = error.what();
    }
    const double end_s = utc_now_s();
    {
      const std::lock_guard guard(mutex_);
      history_.longest_answer_s = std::max(history_.longest_answer_s, end_s - begin_s);
      if (!fault.empty()) {
        ++history_.faults;
        history_.last_fault = fault;
      }
    }
    if (fault.empty()) take(answer, interval_s);
    // A login that is refused again and again locks the account of many BMCs.
    faults_in_a_row = fault.empty() ? 0 : std::min(faults_in_a_row + 1, kMostDoublings);
    if (faults_in_a_row > 1) sleep_until_stopped(std::chrono::duration<double>((1 << faults_in_a_row) - 2));
    // The middle of the next slot, so that neither an early nor a late answer falls into another one.
    const double now_s = utc_now_s();
    const double next_s = (std::floor(now_s / interval_s - 0.5) + 1.5) * interval_s;
    sleep_until_stopped(std::chrono::duration<double>(next_s - now_s));
  }
  const std::lock_guard guard(mutex_);
  ended_ = true;
}

void WatchedMeter::take(const std::vector<MeterReading>& answer, double interval_s) {
  const std::lock_guard guard(mutex_);
  take_answer(meter_, answer, interval_s, history_);
}

MeterHistory WatchedMeter::history() const {
  const std::lock_guard guard(mutex_);
  return history_;
}

std::optional<MeterReading> WatchedMeter::newest_power() const {
  const std::lock_guard guard(mutex_);
  for (auto one = history_.latest.rbegin(); one != history_.latest.rend(); ++one)
    if (!one->absent && std::isfinite(one->value)) return *one;
  return std::nullopt;
}

bool WatchedMeter::ended() const {
  const std::lock_guard guard(mutex_);
  return ended_;
}

}  // namespace assay::meters
