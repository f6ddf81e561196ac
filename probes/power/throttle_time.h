// throttle_time: for how long the parts of a node were slowed down since a moment.
#pragma once

#include <optional>
#include <vector>

#include "probes/power/thermal_sensors.h"

namespace assay::power {

/// The throttle counters of `sensors`, which must outlive it, since this was made.
class ThrottleTime {
 public:
  explicit ThrottleTime(const ThermalSensors& sensors);

  /// s that the part that was slowed down longest was, a package or GPU by its temperature. Nothing where no part
  /// counts it, or one answers no more.
  [[nodiscard]] std::optional<double> by_temperature() const;
  /// The same of GPUs and a signal from outside.
  [[nodiscard]] std::optional<double> by_signal() const;

 private:
  [[nodiscard]] std::optional<double> longest(bool signal) const;

  const ThermalSensors& sensors_;
  std::vector<std::optional<double>> begin_s_;
};

}  // namespace assay::power
