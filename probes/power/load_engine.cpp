// load_engine: runs the threads of the load; a thread works for the share of each period that the level asks for.
#include "probes/power/load_engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace assay::power {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::duration<double> kPeriod(0.01);  // of a unit that works for a part: a meter of 25 ms sees a mean
constexpr auto kLongestBegin = std::chrono::seconds(1);
constexpr auto kLongestRest = std::chrono::seconds(10);  // a unit has milliseconds in its queue
constexpr double kLeastAlone = 0.1;  // of a unit that shares its level with none: a tenth of each period

/// The share of its time that the unit at `place` of `places` works at `level`.
double duty_of(double level, const LoadPart& part) {
  return std::clamp(level * static_cast<double>(part.places) - static_cast<double>(part.place), 0.0, 1.0);
}

}  // namespace

LoadEngine::LoadEngine(std::vector<LoadPart> parts) {
  for (auto& part : parts) units_.emplace_back().part = std::move(part);
  for (auto& one : units_) threads_.emplace_back([this, &one] { live(one); });
  while (ready_.load() < units_.size()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  try {
    check();
  } catch (...) {
    end();
    throw;
  }
}

LoadEngine::~LoadEngine() { end(); }

void LoadEngine::end() {
  over_ = true;
  ++change_;
  change_.notify_all();
  threads_.clear();
}

void LoadEngine::work_at(double level) {
  if (level_.exchange(level) == level) return;
  ++change_;
  change_.notify_all();
}

double LoadEngine::least_level() const {
  double least = 1;
  for (const auto& one : units_)
    least = std::min(least, one.part.places > 1 ? 1.0 / static_cast<double>(one.part.places) : kLeastAlone);
  return least;
}

double LoadEngine::flop() const {
  double all = 0;
  for (const auto& one : units_) {
    if (one.part.counted)
      all += static_cast<double>(one.begun.load(std::memory_order_relaxed)) * one.part.unit->flop_of_work();
  }
  return all;
}

Clock::time_point LoadEngine::last_begin() const {
  const auto limit = Clock::now() + kLongestBegin;
  const double level = level_.load();
  Clock::time_point last{};
  for (const auto& one : units_) {
    if (duty_of(level, one.part) <= 0) continue;
    while (one.begun.load() == 0) {
      if (Clock::now() > limit) throw std::runtime_error("a part of the load has not begun within a second");
      std::this_thread::sleep_for(std::chrono::microseconds(20));  // the units may need this processor
    }
    last = std::max(last, one.first.load());
  }
  return last;
}

void LoadEngine::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void LoadEngine::rest() {
  work_at(0);
  const auto limit = Clock::now() + kLongestRest;
  for (const auto& one : units_) {
    while (!one.rests.load()) {
      check();
      if (Clock::now() > limit) throw std::runtime_error("a part of the load has not ended its work in ten seconds");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void LoadEngine::each(const std::function<void(const LoadUnit&)>& use) const {
  for (const auto& one : units_) use(*one.part.unit);
}

void LoadEngine::live(Driven& driven) {
  bool prepared = false;
  try {
    driven.part.unit->prepare();
    prepared = true;
    ++ready_;
    drive(driven);
    driven.part.unit->close();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  if (!prepared) ++ready_;
}

void LoadEngine::drive(Driven& driven) {
  LoadUnit& unit = *driven.part.unit;
  while (!over_.load()) {
    const std::uint32_t seen = change_.load();
    const double duty = duty_of(level_.load(), driven.part);
    if (duty <= 0) {
      unit.finish();
      driven.rests = true;
      if (!over_.load()) change_.wait(seen);
      driven.rests = false;
      continue;
    }
    const auto begin = Clock::now();
    if (driven.begun.load(std::memory_order_relaxed) == 0) driven.first = begin;
    do {
      driven.begun.fetch_add(1, std::memory_order_release);
      unit.work();
    } while (Clock::now() - begin < duty * kPeriod);
    if (duty == 1) continue;
    unit.finish();
    // Time over its share is made up for, as far as a change of the level can wait.
    const std::chrono::duration<double> busy = Clock::now() - begin;
    const auto period = std::clamp<std::chrono::duration<double>>(busy / duty, kPeriod, 2 * kPeriod);
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(period));
  }
  unit.finish();
}

}  // namespace assay::power
