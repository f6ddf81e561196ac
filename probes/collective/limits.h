// limits: how long the steps of a collective may take before a rank counts as hanging.
#pragma once

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

/// Time that a leader waits for a rank beyond the rank's own limit, so that the rank's reason comes first.
inline constexpr Seconds kGrace = {30};
/// Leaving: freeing memory and the context.
inline constexpr Seconds kLeaveLimit = {30};
/// One exchange between leaders: the longest request of all.
inline constexpr Seconds kExchangeLimit = {kBatchLimit.count + 2 * kGrace.count};

}  // namespace assay::collective
