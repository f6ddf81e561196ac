// detection: the rates of faults that a check without a finding excludes.
#pragma once

#include <cmath>

namespace assay::cuda {

/// The rate at which events that are seen whenever they happen show at least once in `exposure` with a probability of
/// 0.95: -ln(0.05) / exposure. In events in the unit of the exposure, which must be positive.
inline double rate_seen(double exposure) {
  constexpr double kMissed = 0.05;
  return -std::log(kMissed) / exposure;
}

}  // namespace assay::cuda
