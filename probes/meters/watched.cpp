// watched: a meter that hangs, lies or answers slowly delays its own thread alone.
#include "probes/meters/watched.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "probes/core/probe.h"

namespace assay {
namespace {

constexpr std::size_t kLatest = 300;  // five minutes at one a second: as long as a level of the procedure
constexpr int kMostDoublings = 6;     // of the wait after a fault: a minute at most
constexpr double kSeveralLeast = 1.5, kSeveralMost = 4.5;  // power of three phases over that of one, not balanced

/// The number of `quantity` of the whole, when the answer has it.
std::optional<double> whole(const std::vector<MeterReading>& answer, Quantity quantity) {
  const auto found = std::ranges::find_if(
      answer, [&](const MeterReading& one) { return one.quantity == quantity && one.outlet == 0 && !one.absent; });
  return found == answer.end() ? std::nullopt : std::optional(found->value);
}

/// Checks what one answer says twice. Strips with three phases give one phase's current: their product is a third of
/// the power, or that by the root of 3 where the voltage is between phases, and more or less where the load is not
/// balanced. So only a scale that is wrong by ten shows there.
void check_scale(const std::vector<MeterReading>& answer, MeterHistory& history) {
  const auto power = whole(answer, Quantity::power), voltage = whole(answer, Quantity::voltage),
             current = whole(answer, Quantity::current), factor = whole(answer, Quantity::power_factor);
  if (power && voltage && current && factor && *power > 0 && *current > 0) {
    history.scale_checked = true;
    history.scale.reset();
    const double one_phase_w = *voltage * *current * *factor;
    const double phases = *power / one_phase_w;
    if (phases < kSeveralLeast || phases > kSeveralMost)
      history.scale = scale_doubt(*power, *voltage, *current, *factor);
  }
  const auto heat = whole(answer, Quantity::heat), flow = whole(answer, Quantity::flow),
             supply = whole(answer, Quantity::supply_temperature), back = whole(answer, Quantity::return_temperature);
  if (heat && flow && supply && back) {
    history.scale_checked = true;
    history.scale = heat_doubt(*heat, *flow, *back - *supply);
  }
}

}  // namespace

void take_answer(const Meter&, const std::vector<MeterReading>& answer, double interval_s, MeterHistory& history) {
  ++history.answers;
  for (const auto& one : answer) {
    if (one.quantity == Quantity::power && one.outlet == 0) {
      history.latest.push_back(one);
      if (history.latest.size() > kLatest) history.latest.pop_front();
    }
    if (one.absent || !std::isfinite(one.value)) continue;
    history.series.try_emplace({one.quantity, one.outlet}, interval_s).first->second.add(one.taken_s, one.value);
  }
  check_scale(answer, history);
}

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

}  // namespace assay
