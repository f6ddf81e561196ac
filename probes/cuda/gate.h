// gate: holds a stream until all work of a measurement is enqueued, so that no launch time is in it.
#pragma once

#include <cstdint>

#include "probes/core/units.h"
#include "probes/cuda/device.h"

namespace assay::cuda {

/// A gate for one stream at a time. Between close() and open(), enqueue at most some hundreds of operations: a stream
/// takes about a thousand before enqueueing itself waits, and that wait would end only by the gate's time limit.
class Gate {
 public:
  /// Longest time a closed gate holds: enqueueing takes milliseconds, and no kernel may spin for ever. The environment
  /// variable ASSAY_GATE_SECONDS, from 1 to 100, stands in for it under tools that slow enqueueing down; agents pass it
  /// to no probe.
  static constexpr Seconds kLongestHold = {5};

  Gate();
  /// Enqueues a one-thread kernel that spins until open() or kLongestHold.
  void close(const Stream& stream);
  /// Lets the stream continue.
  void open();
  /// Throws std::runtime_error when a gate has opened too early: measurements behind it include
  /// launch time. Call after the stream is done.
  void check_held() const;

 private:
  PinnedBuffer flags_;  ///< the round that is open, and the number of rounds that ran out
  std::uint64_t round_ = 0;
  Seconds longest_hold_;
};

/// Enqueues a one-thread kernel that spins until *opened is `round` or more; after `limit` it adds 1 to *ran_out and
/// ends. Both are in page-locked memory of the host.
void enqueue_hold(const std::uint64_t* opened, std::uint64_t* ran_out, std::uint64_t round, Seconds limit,
                  const Stream& stream);

}  // namespace assay::cuda
