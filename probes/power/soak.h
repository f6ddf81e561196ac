// soak: a load that is held until nothing warms up any more, with every reading before and after that moment.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "probes/core/sampling.h"
#include "probes/power/in_band_power.h"
#include "probes/power/load_engine.h"
#include "probes/power/steadiness.h"
#include "probes/power/thermal_sensors.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::power {

/// All times in s.
struct SoakPlan {
  SteadyLimits limits;    ///< and the window over which slopes are taken
  double hold_s = 1800;   ///< after the steady mark
  double cap_s = 14400;   ///< the end, steady or not
  double ramp_s = 5;      ///< of the load, up and down
  double interval_s = 1;  ///< between readings
};

/// One series with everything that was read of it.
struct Curve {
  std::string metric;
  Subject subject;
  Values at = {};
  std::vector<double> values = {};
  std::size_t marked = 0;  ///< how many were read before the steady mark
};

/// The soak of one node. Its arguments must outlive it.
class Soak {
 public:
  /// `power` is null without an energy counter, `engine` if something else loads the node.
  Soak(const SoakPlan& plan, const ThermalSensors& sensors, InBandPower* power, LoadEngine* engine);

  /// Loads, reads and looks until the mark is as old as hold_s, until cap_s, or until `ends` at a reading, and ramps
  /// the load down. Throws std::runtime_error on a stop, and what reading the energy counters and the load throw.
  void run(const std::function<bool()>& ends);
  /// Time from the begin of the load to its end, in s.
  [[nodiscard]] double lasted_s() const { return ended_s_; }
  /// Records every curve, what was before the mark as warm-up; without a mark what was before the last window is.
  /// `base_hz`: the base clock of the processors, if known.
  void record(Recorder& record, std::optional<double> base_hz) const;

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] double now_s() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  void wait_until(double due_s);
  void ramp_down();
  void read(double at_s);
  void set_mark();
  [[nodiscard]] std::vector<std::optional<double>> counters() const;
  [[nodiscard]] Sampling sampling_of(const Curve& curve) const;
  void record_rate_kept(Recorder& record) const;

  SoakPlan plan_;
  const ThermalSensors& sensors_;
  InBandPower* power_;
  LoadEngine* engine_;
  Steadiness steadiness_;
  SteadyMark mark_;
  std::vector<Curve> curves_;  ///< as the sensors' series
  Curve spread_{.metric = "gpu_temperature_spread", .subject = {}};
  Curve power_curve_{.metric = "power", .subject = {}};
  Curve rate_{.metric = "rate", .subject = {}};
  std::vector<std::optional<double>> at_mark_,
      throttled_s_;  ///< as the sensors' counters; at the begin until there is a mark
  Clock::time_point begin_;
  double begin_utc_s_ = 0, ended_s_ = 0, flop_ = 0, read_s_ = 0;
};

}  // namespace assay::power
