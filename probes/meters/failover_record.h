// failover_record: losses of feeds, as the lines of a record. failover_watch writes it, and the simulated plant too.
#pragma once

#include <span>
#include <vector>

#include "probes/core/recorder.h"
#include "probes/meters/failover.h"
#include "probes/meters/history.h"

namespace assay::meters {

/// The power that `meter`, which must outlive it, and its outlets gave so far, at the middle of each slot.
FeedReadings power_so_far(const Meter& meter, const MeterHistory& history);

/// Records whether a feed was lost, and of each loss, with the rack as subject, its effects or why they are not known.
void record_failovers(std::span<const FeedReadings> meters, const std::vector<FeedLoss>& losses, double interval_s,
                      Recorder& record);

}  // namespace assay::meters
