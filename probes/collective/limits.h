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
/// Time that a leader waits for a rank beyond the rank's own limit, so that the rank's reason comes first.
inline constexpr Seconds kGrace = {30};
/// Leaving: freeing memory and the context.
inline constexpr Seconds kLeaveLimit = {30};
/// One exchange between leaders: the longest request of all.
inline constexpr Seconds kExchangeLimit = {kBatchLimit.count + 2 * kGrace.count};

}  // namespace assay::collective
