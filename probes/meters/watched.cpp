// watched: reads one meter in a thread of its own, so that a meter that does not answer delays no other.
#include "probes/meters/watched.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/meters/derived.h"

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

namespace {

/// Whether power_of_racks_w counts `one`: no better meter of its rack was ever read.
bool counts_towards_racks(const WatchedMeter& one, const Watched& watched) {
  constexpr std::string_view kBestFirst[] = {"rack", "feed", "shelf"};  // as power_of_racks_w takes them
  const auto* own = std::ranges::find(kBestFirst, one.meter().subject);
  if (own == std::end(kBestFirst) || one.meter().rack.empty()) return false;
  return std::ranges::none_of(watched, [&](const auto& other) {
    return other->meter().rack == one.meter().rack && other->newest_power() &&
           std::ranges::find(kBestFirst, other->meter().subject) < own;
  });
}

/// The first meter that is needed and was not read since `oldest_s`.
std::string unseen(const Watched& watched, double limit_w, double oldest_s) {
  for (const auto& one : watched) {
    const auto newest = one->newest_power();
    if (newest && newest->taken_s >= oldest_s) continue;
    const std::string& name = one->meter().name;
    if (one->meter().rating_w)
      return fmt::format("{} has a rating and does not answer: a load must not continue unseen", name);
    if (limit_w > 0 && newest && counts_towards_racks(*one, watched))
      return fmt::format(
          "{} counts towards the limit of all racks and answers no more: a load must not continue unseen", name);
  }
  return "";
}

}  // namespace

std::string over_limit(const Watched& watched, double limit_w, double oldest_s) {
  std::vector<MeterPower> powers;
  for (const auto& one : watched) {
    const Meter& meter = one->meter();
    const auto newest = one->newest_power();
    if (!newest) continue;
    powers.push_back({.meter = &meter, .power_w = newest->value});
    if (meter.rating_w && newest->value > *meter.rating_w)
      return fmt::format("{} is at {:.0f} W, its rating is {:.0f} W", meter.name, newest->value, *meter.rating_w);
  }
  const double all_w = power_of_racks_w(powers);
  if (limit_w > 0 && all_w > limit_w)
    return fmt::format("all racks together are at {:.0f} W, the limit is {:.0f} W", all_w, limit_w);
  return unseen(watched, limit_w, oldest_s);
}

}  // namespace assay::meters
