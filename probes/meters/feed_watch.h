// feed_watch: all meters of a site, each read by a thread of its own, until a signal, a time or a guard ends it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
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

/// The meters that the parameters of feed_spec.h name, being read. One of them in a process: its threads are detached,
/// because one that waits inside a library must not hold the record back, and main leaves without destructors.
class FeedWatch {
 public:
  /// Begins to read. Throws Skip when there are no meters, and std::runtime_error for a parameter out of range.
  explicit FeedWatch(const Parameters& given);

  /// Waits for SIGTERM, the duration, or, where `look` is given, until it returns true; it is asked ten times a second.
  /// With guard also for a limit, whose words are returned; else they are empty.
  std::string wait(const std::function<bool()>& look = {}) const;
  /// Ends the readings and gives answers under way six seconds.
  void stop() const;
  /// Records the readings of every meter, values derived from several, and why meters gave none. Throws Skip with the
  /// reasons when none answered.
  void record(const std::string& over_limit, Recorder& record) const;
  [[nodiscard]] const Watched& watched() const { return watched_; }
  [[nodiscard]] double interval_s() const { return interval_s_; }

 private:
  Watched watched_;
  double interval_s_ = 1, duration_s_ = 0, limit_w_ = 0;
  bool guards_ = false;
};

}  // namespace assay::meters
