// throttle_time: the largest increase of a throttling counter since a moment.
#include "probes/power/throttle_time.h"

#include <algorithm>

namespace assay::power {

ThrottleTime::ThrottleTime(const ThermalSensors& sensors) : sensors_(sensors) {
  for (const auto& one : sensors.counters()) begin_s_.push_back(one.read_s());
}

std::optional<double> ThrottleTime::by_temperature() const { return longest(false); }
std::optional<double> ThrottleTime::by_signal() const { return longest(true); }

std::optional<double> ThrottleTime::longest(bool signal) const {
  std::optional<double> longest;
  for (std::size_t i = 0; i < begin_s_.size(); ++i) {
    const ThrottleCounter& one = sensors_.counters()[i];
    if ((one.metric == "brake_time") != signal) continue;
    const auto now_s = one.read_s();
    if (!begin_s_[i] || !now_s) return std::nullopt;
    longest = std::max(longest.value_or(0), *now_s - *begin_s_[i]);
  }
  return longest;
}

}  // namespace assay::power
