// stillness: how long a process has been stopped, or several have not run, as a leader sees it that looks now and then.
#pragma once

#include <chrono>
#include <optional>

#include "probes/core/units.h"

namespace assay::collective {

/// When ranks of this node that owe an answer count as silent before the limit of their request.
struct RankPatience {
  /// One of them has been stopped by a signal for so long: it does not compute, and the others wait for it.
  Seconds stopped = {5};
  /// None of them has run for so long. Only for ranks that wait for no other node; nothing: they are waited for.
  std::optional<Seconds> idle = {};
  /// One of them has answered with an error so long ago: the others may wait for it, and {} replaces their answers.
  /// Nothing: they are waited for.
  std::optional<Seconds> after_error = {};
};

/// Adds up how long something has lasted. Only time in which this process has looked counts: a leader that was stopped
/// with its ranks, and continues before them, finds nothing that lasted.
class Lasting {
 public:
  using Clock = std::chrono::steady_clock;

  /// Notes whether it lasts at `now`. Returns how long it has.
  Seconds look(bool lasts, Clock::time_point now);

 private:
  std::optional<Clock::time_point> looked_;
  Seconds lasted_;
};

}  // namespace assay::collective
