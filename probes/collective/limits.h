// limits: how long the steps of a collective may take before a rank counts as hanging.
#pragma once

#include <algorithm>

#include "probes/core/units.h"

namespace assay::collective {

/// Making a CUDA context on every GPU of a large node, one driver lock for all.
inline constexpr Seconds kHelloLimit = {120};
/// Entering a communicator: a thousand ranks over Ethernet take about a minute.
inline constexpr Seconds kEnterLimit = {240};
/// Device work of one request: 16 GiB over one 1 Gbit/s port and back are about as long.
inline constexpr Seconds kBatchLimit = {300};
/// The same of a batch in which each of `ranks` sends and receives `moved` together: time for new connections, for a
/// gate to give up and for a slow start of so many, and for the data over 1 Gbit/s that sixteen ranks share; so that a
/// rank that hangs is named early.
constexpr Seconds batch_limit(Bytes moved, int ranks) {
  constexpr double kStart_s = 20, kOfRank_s = 0.1, kSlowest = 125e6 / 16;  // B/s
  const double wanted = kStart_s + kOfRank_s * ranks + static_cast<double>(moved.count) / kSlowest;
  return wanted < kBatchLimit.count ? Seconds{wanted} : kBatchLimit;
}
static_assert(batch_limit({0}, 0).count == 20 && batch_limit({78'125'000}, 10).count == 31);
static_assert(batch_limit({std::uint64_t{32} << 30}, 8).count == kBatchLimit.count);

/// Kernels that are loaded or compiled, and peers that connect, when work is done for the first time.
inline constexpr Seconds kStartOfWork = {60};
/// The same of work on one GPU that has not been timed yet, with so many FLOP, and bytes of its memory that are read
/// and written: at a hundredth of the rates of an A100, whose clocks a brake lowers to a sixth at most.
constexpr Seconds untimed_limit(double flop, double bytes) {
  constexpr double kSlowestFlop = 1e12, kSlowestMemory = 2e10;
  const double wanted = kStartOfWork.count + flop / kSlowestFlop + bytes / kSlowestMemory;
  return wanted < kBatchLimit.count ? Seconds{wanted} : kBatchLimit;
}
static_assert(untimed_limit(2e13, 1e11).count == 85);

/// The longest wait for work that is done again and again: kSlower times the slowest so far, at least kLeast, at most
/// kBatchLimit. A GPU whose clocks a brake or heat lowers, or that shares a path, is slower by less than ten and stays
/// within it; work that is done in no time may meet a driver that resets a channel, or a page that is retired, which
/// take seconds.
class Pace {
 public:
  static constexpr double kSlower = 20;
  static constexpr Seconds kLeast = {10};

  /// Of so much work; `untimed` until something was timed. `anew`: of a kind that has not been done before.
  [[nodiscard]] constexpr Seconds limit(Seconds untimed, double amount = 1, bool anew = false) const {
    if (slowest_s_ == 0) return untimed;
    const double wanted = std::max(kLeast.count, kSlower * slowest_s_ * amount) + (anew ? kStartOfWork.count : 0);
    return {std::min(kBatchLimit.count, wanted)};
  }
  /// So much work was done in `time`.
  constexpr void took(Seconds time, double amount = 1) { slowest_s_ = std::max(slowest_s_, time.count / amount); }

 private:
  double slowest_s_ = 0;  ///< of an amount of 1; 0: nothing was timed
};

/// Time that a leader waits for a rank beyond the rank's own limit, so that the rank's reason comes first.
inline constexpr Seconds kGrace = {30};
/// Time for the other ranks of a node once one has failed: they may wait for it.
inline constexpr Seconds kAfterError = {5};
/// Leaving: freeing memory and the context.
inline constexpr Seconds kLeaveLimit = {30};
/// One exchange between leaders: the longest request of all.
inline constexpr Seconds kExchangeLimit = {kBatchLimit.count + 2 * kGrace.count};

}  // namespace assay::collective
