// watched: one meter that is read again and again by a thread of its own, with its readings.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
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
  /// A copy of the present state.
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

/// The meters of a site, each read by a thread of its own.
using Watched = std::vector<std::shared_ptr<WatchedMeter>>;

/// Why a load must stop; empty if it may continue. First the limits exceeded: a meter over its rating, or all racks
/// together over `limit_w`, unless that is 0. Then the meters unseen since `oldest_s` (s since 1970; the words end with
/// "unseen"): a meter with a rating, or one that answered before and whose power is counted towards `limit_w`. A silent
/// meter does not hide another one that is over its rating.
std::string over_limit(const Watched& watched, double limit_w, double oldest_s);

}  // namespace assay::meters
