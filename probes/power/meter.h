// meter: one counter or gauge of an instrument, and its readings so far.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probes/core/record.h"
#include "probes/power/energy_series.h"

namespace assay::power {

/// An energy counter of any instrument.
struct EnergyCounter {
  std::string name;    ///< for people: "package-0/dram", "GPU-8f2…"
  std::string source;  ///< its path
  Subject subject;
  std::string power_metric, energy_metric;
  std::uint64_t range_uj = 0;  ///< its modulus; 0: it never wraps, and a step back is a new count
  double shortest_s = 0;       ///< readings closer than this say more of the counter's grain than of the power
  std::function<std::optional<std::uint64_t>()> read_uj;  ///< null optional once it no longer answers; may throw Skip
};

/// A reading of power as the instrument makes it.
struct PowerGauge {
  Subject subject;
  std::string metric;
  std::function<std::optional<double>()> read_w;  ///< null optional once it no longer answers
};

/// An energy counter being read. Its power samples are increases over the true times between readings.
class EnergyMeter {
 public:
  /// Reads the counter for the first time. Throws the errors of reading.
  explicit EnergyMeter(EnergyCounter counter);

  /// Reads it again; `whole` is false for the rest at the end.
  void read(bool whole);
  /// Whether it has counted anything; a counter that does not move is no meter.
  [[nodiscard]] bool moves() const { return series_.energy_j() > 0; }
  /// Whether it stopped answering, or went back, before the end.
  [[nodiscard]] bool broken() const { return !last_uj_; }
  [[nodiscard]] const EnergyCounter& counter() const { return counter_; }
  [[nodiscard]] const EnergySeries& series() const { return series_; }
  /// Longest time between two readings, in s.
  [[nodiscard]] double longest_s() const { return longest_s_; }

 private:
  using Clock = std::chrono::steady_clock;
  EnergyCounter counter_;
  std::optional<std::uint64_t> last_uj_;
  Clock::time_point last_;
  EnergySeries series_;
  double longest_s_ = 0;
};

/// A gauge being read. When readings reach the bound, neighbours are joined in pairs, as EnergySeries does, and a later
/// sample is the mean of as many readings.
class GaugeMeter {
 public:
  /// Nothing is read yet. `max_samples` must be even and at least 2.
  explicit GaugeMeter(PowerGauge gauge, std::size_t max_samples = EnergySeries::kMaxSamples)
      : gauge_(std::move(gauge)), max_samples_(max_samples) {}

  /// Takes one reading; one that the instrument does not answer is left out.
  void read();
  [[nodiscard]] const PowerGauge& gauge() const { return gauge_; }
  /// Samples in the order taken, in W.
  [[nodiscard]] const std::vector<double>& power_w() const { return samples_w_; }

 private:
  PowerGauge gauge_;
  std::size_t max_samples_;
  std::vector<double> samples_w_;
  double pending_sum_w_ = 0;  // readings of the next sample so far
  int pending_count_ = 0;
  int readings_per_sample_ = 1;
};

}  // namespace assay::power
