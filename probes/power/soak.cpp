// soak: one loop that reads the sensors, checks their slopes, and moves the load along its ramp.
#include "probes/power/soak.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"

namespace assay::power {
namespace {

constexpr double kLooks = 60;         // at the slopes, in a window
constexpr double kLongestStop_s = 4;  // the ramp of a stop: an agent kills ten seconds after it
constexpr double kTick_s = 0.02;      // of a ramp

double mean_between(std::vector<double>::const_iterator begin, std::vector<double>::const_iterator end) {
  double sum = 0;
  for (auto one = begin; one != end; ++one) sum += *one;
  return sum / static_cast<double>(end - begin);
}

}  // namespace

Soak::Soak(const SoakPlan& plan, const ThermalSensors& sensors, InBandPower* power, LoadEngine* engine)
    : plan_(plan),
      sensors_(sensors),
      power_(power),
      engine_(engine),
      steadiness_(plan.limits),
      mark_(plan.limits, plan.hold_s) {
  for (const auto& one : sensors.series())
    curves_.push_back({.metric = one.metric, .subject = one.subject, .at = one.at});
}

void Soak::run(const std::function<bool()>& ends) {
  begin_utc_s_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  at_mark_ = counters();  // without a mark the whole soak counts
  begin_ = Clock::now();
  double next_look_s = plan_.limits.window_s;
  for (double due_s = plan_.interval_s; !mark_.held(now_s()) && now_s() < plan_.cap_s; due_s += plan_.interval_s) {
    wait_until(due_s);
    if (stop_requested()) break;
    const double at_s = now_s();
    read(at_s);
    if (ends()) break;
    while (due_s + plan_.interval_s <= at_s) due_s += plan_.interval_s;  // a late reading is not made up for
    if (at_s < next_look_s) continue;
    next_look_s = at_s + plan_.limits.window_s / kLooks;
    const bool was = mark_.at_s().has_value();
    mark_.look(steadiness_, at_s);
    if (!was && mark_.at_s()) set_mark();
  }
  ended_s_ = now_s();
  const auto at_end = counters();
  ramp_down();
  if (engine_ != nullptr) engine_->rest();
  if (stop_requested()) throw std::runtime_error("stopped before the end of the soak");
  for (std::size_t i = 0; i < at_end.size(); ++i) {
    const bool both = at_mark_.at(i) && at_end[i];
    throttled_s_.push_back(both ? std::optional(*at_end[i] - *at_mark_[i]) : std::nullopt);
  }
}

void Soak::wait_until(double due_s) {
  for (double now = now_s(); now < due_s && !stop_requested(); now = now_s()) {
    if (engine_ != nullptr) engine_->work_at(std::min(1.0, now / plan_.ramp_s));
    const double step_s = now < plan_.ramp_s ? std::min(kTick_s, due_s - now) : due_s - now;
    sleep_until_stopped(std::chrono::duration<double>(step_s));
  }
}

void Soak::ramp_down() {
  if (engine_ == nullptr) return;
  const double level = std::min(1.0, ended_s_ / plan_.ramp_s);
  const double ramp_s = std::min(plan_.ramp_s, kLongestStop_s);
  const auto from = Clock::now();
  for (double gone = 0; gone < ramp_s; gone = std::chrono::duration<double>(Clock::now() - from).count()) {
    engine_->work_at(level * (1 - gone / ramp_s));
    std::this_thread::sleep_for(std::chrono::duration<double>(kTick_s));
  }
  engine_->work_at(0);
}

void Soak::read(double at_s) {
  std::optional<double> hottest, coolest;
  for (std::size_t i = 0; i < curves_.size(); ++i) {
    const ThermalSeries& one = sensors_.series()[i];
    const auto value = one.read();
    if (!value) continue;  // its window empties, and the mark with it
    curves_[i].values.push_back(*value);
    steadiness_.add(one.name, one.kind, at_s, *value);
    if (one.metric != "temperature" || one.subject.kind != "gpu") continue;
    hottest = std::max(hottest.value_or(*value), *value);
    coolest = std::min(coolest.value_or(*value), *value);
  }
  if (sensors_.gpus() > 1 && hottest) spread_.values.push_back(*hottest - *coolest);
  if (power_ != nullptr) {
    if (const auto power = power_->read()) {
      power_curve_.values.push_back(power->value);
      steadiness_.add("power", SteadyKind::power, at_s, power->value);
    }
  }
  if (engine_ == nullptr) return;
  engine_->check();
  const double flop = engine_->flop();
  rate_.values.push_back((flop - flop_) / (at_s - read_s_));
  flop_ = flop;
  read_s_ = at_s;
}

std::vector<std::optional<double>> Soak::counters() const {
  std::vector<std::optional<double>> all;
  for (const auto& one : sensors_.counters()) all.push_back(one.read_s());
  return all;
}

void Soak::set_mark() {
  for (auto& curve : curves_) curve.marked = curve.values.size();
  for (Curve* curve : {&spread_, &power_curve_, &rate_}) curve->marked = curve->values.size();
  at_mark_ = counters();
}

Sampling Soak::sampling_of(const Curve& curve) const {
  const auto window = static_cast<std::size_t>(plan_.limits.window_s / plan_.interval_s);
  const std::size_t last = curve.values.size() > window ? curve.values.size() - window : 0;
  // A mark that is as new as the last reading has none after it: that reading counts.
  const std::size_t at = std::min(mark_.at_s() ? curve.marked : last, curve.values.size() - 1);
  const auto border = curve.values.begin() + static_cast<std::ptrdiff_t>(at);
  return {.samples = {border, curve.values.end()},
          .warmup = {curve.values.begin(), border},
          .stopped = mark_.at_s() ? "fixed" : "time_cap"};
}

void Soak::record_rate_kept(Recorder& record) const {
  const auto window = static_cast<std::ptrdiff_t>(plan_.limits.window_s / plan_.interval_s);
  const auto ramp = static_cast<std::ptrdiff_t>(std::ceil(plan_.ramp_s / plan_.interval_s));
  if (std::ssize(rate_.values) < ramp + 2 * window) return;
  const auto first = rate_.values.begin() + ramp;
  const double early = mean_between(first, first + window);
  if (early > 0) record.measurement("rate_kept", mean_between(rate_.values.end() - window, rate_.values.end()) / early);
}

void Soak::record(Recorder& record, std::optional<double> base_hz) const {
  if (mark_.at_s()) {
    record.measurement("time_to_steady", *mark_.at_s());
    record.condition("held_s", ended_s_ - *mark_.at_s());
  } else {
    record.condition("unsteady_because", mark_.why_not());
  }
  for (const auto& curve : curves_) {
    if (curve.values.empty()) continue;
    const Sampling sampling = sampling_of(curve);
    record.measurement(curve.metric, sampling, curve.subject, curve.at);
    if (base_hz && curve.metric == "clock" && curve.subject.kind == "cpu")
      record.measurement("clock_over_base", share_of(sampling, *base_hz), curve.subject);
  }
  for (const Curve* curve : {&spread_, &power_curve_, &rate_})
    if (!curve->values.empty()) record.measurement(curve->metric, sampling_of(*curve));
  for (std::size_t i = 0; i < throttled_s_.size(); ++i) {
    const ThrottleCounter& one = sensors_.counters()[i];
    if (throttled_s_[i]) record.measurement(one.metric, *throttled_s_[i], one.subject);
  }
  record_rate_kept(record);
  record.condition("steady", mark_.held(ended_s_));
  record.condition("marks_withdrawn", std::int64_t{mark_.withdrawn()});
  record.condition("window_s", plan_.limits.window_s);
  record.condition("interval_s", plan_.interval_s);
  record.condition("soak_begin_s", begin_utc_s_);
}

}  // namespace assay::power
