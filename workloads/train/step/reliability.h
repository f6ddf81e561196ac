// reliability: statistics of interruptions over hours under load, and of the drift of a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "probes/core/machine_tree.h"

namespace assay::train {

/// The mean time between interruptions that is exceeded with 95 % confidence after `load_s` seconds under load with
/// `interruptions`, where their rate is constant: 2 T / chi2(0.95; 2 r + 2), time-terminated (MIL-HDBK-189C, 6.2). In
/// s.
double mtbf_bound_s(double load_s, std::int64_t interruptions);

/// Time under load, in s, without an interruption that shows a mean time of `mtbf_s` with the same confidence.
double load_to_show_s(double mtbf_s);

/// Laplace's statistic of the times `at_s` of interruptions in 0..`load_s`: standard normal if the rate is constant,
/// above 0 if it rises. Nothing for fewer than four, of which it is not normal.
std::optional<double> laplace_trend(std::span<const double> at_s, double load_s);

/// Above this, either way, a rate is not constant (10 %, two-sided).
inline constexpr double kTrendLimit = 1.645;

/// How a value drifts over its times.
struct Drift {
  double per_length = 0;  ///< slope times the length of time, as a share of the median of the values
  double bound = 0;       ///< the same of the slope that is not exceeded with 95 % confidence
};

/// The drift of `values` at `times`, both of one length and the times different, by the median of the slopes of all
/// pairs (Theil 1950, Sen 1968), the bound by Kendall's variance for independent values. Of more than 1500 values,
/// neighbours are joined by their medians. Nothing for fewer than ten, or where the median is not above 0.
std::optional<Drift> drift_of(std::span<const double> times, std::span<const double> values);

/// Sums over the machine since its boot; nothing if it has none of the kind.
struct MachineErrors {
  std::optional<std::int64_t> throttled;    ///< times that a core or package was slowed down for its temperature
  std::optional<std::int64_t> corrected;    ///< memory errors that ECC corrected
  std::optional<std::int64_t> uncorrected;  ///< memory errors that it could not correct
};

/// Source: Linux Documentation/ABI/testing/sysfs-devices-edac; arch/x86/kernel/cpu/mce/therm_throt.c.
MachineErrors machine_errors(const MachineTree& tree);

/// `after` less `before`; nothing if either has none. A counter that fell was reset: its whole value is new.
std::optional<std::int64_t> risen(const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& after);

}  // namespace assay::train
