// slots: readings on a grid of UTC, so that records of several machines share one axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace assay::meters {

/// A stretch of readings without a gap: the first belongs to the slot that begins at `begin_s` (UTC, s since 1970).
struct Stretch {
  double begin_s = 0;
  double interval_s = 1;
  std::vector<double> samples;
};

/// The readings of one quantity by slot. Slots begin at multiples of the interval since 1970. When they reach the
/// bound, neighbours are joined in pairs, as EnergySeries does: a soak of days still fits a record, as means over
/// longer slots.
class SlotSeries {
 public:
  /// `interval_s` must be positive, `max_slots` even and at least 2.
  explicit SlotSeries(double interval_s, std::size_t max_slots = 20'000)
      : interval_s_(interval_s), max_slots_(max_slots) {}

  /// Takes one reading in. Those of one slot become their mean; one from before the last slot (the clock was set back)
  /// is left out and counted.
  void add(double taken_s, double value);
  /// The stretches in order.
  [[nodiscard]] std::vector<Stretch> stretches() const;
  /// The readings by number of slot, which begins at that number times the interval.
  [[nodiscard]] std::map<std::int64_t, double> values() const;
  /// Joins neighbours until slots are at least `interval_s` long, so that series of several meters have one grid.
  void widen_to(double interval_s);
  /// Readings left out because the clock went back.
  [[nodiscard]] int left_out() const { return left_out_; }
  [[nodiscard]] double interval_s() const { return interval_s_; }

 private:
  void join_pairs();

  double interval_s_;
  std::size_t max_slots_;
  std::int64_t first_ = 0;
  std::vector<double> slots_;  // a gap is not a number
  int in_last_ = 0;            // readings in the last slot
  int left_out_ = 0;
};

}  // namespace assay::meters
