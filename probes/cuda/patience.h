// patience: waiting for a GPU that may never be done. Needs no CUDA.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "probes/core/units.h"

namespace assay::cuda {

/// Asks `done` again and again until it says yes. Polls instead of blocking, because a device that hangs never comes
/// back from a blocking call; times are taken on the device, so the poll's coarseness is in no number. When `limit` is
/// over the GPU hangs: the process leaves (leave_stuck) with `what` was waited for, since to free memory of a GPU that
/// hangs, as an exception on its way would, is to wait for it.
void poll_or_leave(const std::function<bool()>& done, Seconds limit, std::string_view what);

/// The work that a GPU has in hand when it hangs.
struct InHand {
  std::string words;   ///< "the all_reduce of tp, call 7 of 40"; empty: unknown
  bool waits = false;  ///< for other GPUs
};

/// When work of the current GPU must be done, wherever this thread is until then: it may be in a call of the driver
/// that never comes back, as one that enqueues behind a GPU that hangs. A thread of its own looks at the clock. When
/// the time is over, the process leaves as from poll_or_leave.
class Deadline {
 public:
  Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline();

  struct Clear {
    void operator()(Deadline* deadline) const noexcept { deadline->clear(); }
  };
  /// Work that must be done in time, until it or its error destroys this.
  using Due = std::unique_ptr<Deadline, Clear>;
  /// From now on `what` must be done within `limit`, one thing at a time. `in_hand` is called, in a thread of its own,
  /// when it is not; an answer that takes more than a second is not waited for.
  [[nodiscard]] Due set(std::string what, Seconds limit, std::function<InHand()> in_hand = {});

 private:
  void clear() noexcept;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::cuda
