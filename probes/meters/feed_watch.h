// feed_watch: all meters of a site, each read by a thread of its own, until a signal, a time or a guard ends it.
#pragma once

#include <functional>
#include <string>

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "probes/meters/watched.h"

namespace assay::meters {

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
