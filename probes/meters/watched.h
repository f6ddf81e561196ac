// watched: one meter that is read again and again by a thread of its own, and what came of it.
#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "probes/meters/history.h"
#include "probes/meters/session.h"

namespace assay::meters {

/// A meter with its history, shared by the thread that reads it and the one that records it.
class WatchedMeter {
 public:
  explicit WatchedMeter(Meter meter) : meter_(std::move(meter)) {}

  /// Reads on the grid of `interval_s` until `stop` is true. Throws nothing: every fault is counted and remembered.
  void watch(double interval_s, bool (*stop)()) noexcept;
  /// Takes one answer in, as watch() does with each.
  void take(const std::vector<MeterReading>& answer, double interval_s);
  [[nodiscard]] const Meter& meter() const { return meter_; }
  /// A copy of what there is now.
  [[nodiscard]] MeterHistory history() const;
  /// The newest reading of its whole power that is a number; an instrument that says it has none gave nothing.
  [[nodiscard]] std::optional<MeterReading> newest_power() const;
  /// True once watch() has returned.
  [[nodiscard]] bool ended() const;

 private:
  Meter meter_;
  mutable std::mutex mutex_;
  MeterHistory history_;
  bool ended_ = false;
};

}  // namespace assay::meters
