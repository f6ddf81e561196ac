// admission: whether a step may start now, given the power cap, the steps that run and the run's deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "orchestrator/plan/plan.h"
#include "probes/core/units.h"

namespace assay::run {

/// Counts the power and the steps that are running against the limits of a run.
class Admission {
 public:
  /// `power_cap_w`: of the site, if any. `deadline`: of the run, from now, if any.
  Admission(std::optional<double> power_cap_w, std::optional<Seconds> deadline);

  /// Whether the power cap allows `step` in addition to the running steps.
  [[nodiscard]] bool fits_power(const plan::Step& step) const;
  /// Whether no running step excludes `step`, and it excludes none: a step that excludes others shares no network.
  [[nodiscard]] bool fits_others(const plan::Step& step) const { return !alone_ && (!step.alone || running_ == 0); }
  /// Whether `step` is typically over before the deadline.
  [[nodiscard]] bool fits_time(const plan::Step& step) const;

  /// `step` of the plan starts, or ends.
  void begin(const plan::Step& step);
  void end(const plan::Step& step);
  /// An extra test of a search starts, or ends: it takes power, and no step of the plan runs at the same time.
  void begin_test(const plan::Step& step) { power_w_ += step.power_w; }
  void end_test(const plan::Step& step) { power_w_ -= step.power_w; }

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<double> power_cap_w_;
  Clock::time_point deadline_ = Clock::time_point::max();
  double power_w_ = 0;       ///< of the running steps, by design
  std::size_t running_ = 0;  ///< steps of the plan
  bool alone_ = false;       ///< the running step excludes all others
};

}  // namespace assay::run
