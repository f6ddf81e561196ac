// feed_record: readings of a site's meters, as the lines of a record. power_feed and failover_watch write it, and the
// simulated plant writes the same.
#pragma once

#include <vector>

#include "probes/core/meter_list.h"
#include "probes/core/recorder.h"
#include "probes/meters/derived.h"
#include "probes/meters/history.h"

namespace assay::meters {

/// Records every series of `meter` by stretches, each with begin_s, interval_s and the meter's name in `at`, and what
/// is known of the meter as conditions of the subject meter. The record's description must have their names.
void record_meter(const Meter& meter, const MeterHistory& history, double interval_s, Recorder& record);

/// Records values derived from several meters (derived_series), and whether the weather was read.
void record_derived(const std::vector<MeteredHistory>& all, Recorder& record);

}  // namespace assay::meters
