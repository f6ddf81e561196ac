// stonewall: bytes moved by concurrent clients at one moment, and their evenness. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "probes/core/units.h"

namespace assay::cluster_storage {

/// Payload moved since a common start, in slots of time.
class Progress {
 public:
  /// Width of a slot; a moment is known this well.
  static constexpr double kSlot_s = 0.005;
  /// Takes in `bytes` that were moved at `at`, 0 or later.
  void add(Seconds at, std::uint64_t bytes);
  /// Bytes moved by `at`; of the slot that `at` falls into, the share of it that has passed.
  [[nodiscard]] double bytes_by(Seconds at) const;
  /// All that were moved.
  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Adds another stream with the same start.
  void add(const Progress& other);

 private:
  std::vector<std::uint64_t> slots_;
  std::uint64_t total_ = 0;
};

/// Progress of a client when it stopped for the first time.
struct Standing {
  double end_s = 0;          ///< from the common start
  bool out_of_work = false;  ///< it had nothing more to do; else the time was over
};

/// When the first client stopped: the moment up to which all were at work, s from the common start. `duration` is the
/// time that they were given; nothing if they were given none. Nothing if no client is there.
std::optional<double> stonewall_of(std::span<const Standing> clients, std::optional<double> duration_s);

/// Jain's fairness index (Jain, Chiu & Hawe 1984, DEC-TR-301): (sum x)^2 / (n sum x^2); 1 is even, 1/n is all to one.
/// Nothing for no values and where all are 0.
std::optional<double> jain_index(std::span<const double> values);

/// Smallest over largest. Nothing for no values and where all are 0.
std::optional<double> smallest_share(std::span<const double> values);

/// Each over the median of all. Nothing for no values and where the median is 0.
std::optional<std::vector<double>> shares_of_median(std::span<const double> values);

/// Times in classes of 1/64 of their octave, so that memory does not grow with their number.
class TimeClasses {
 public:
  /// Takes in a time of 1 ns and up; less counts as 1 ns.
  void add(double time_s);
  /// Adds another's.
  void add(const TimeClasses& other);
  /// The upper end of the class that holds the quantile at `fraction`, s: at most 1.6 % above it. Nothing if empty.
  [[nodiscard]] std::optional<double> quantile(double fraction) const;
  /// How many.
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
};

}  // namespace assay::cluster_storage
