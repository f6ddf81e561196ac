// derived: series that follow from several meters, slot by slot: a rack's power, phase balance, heat against power.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "probes/core/meter_list.h"
#include "probes/meters/history.h"

namespace assay::meters {

/// One series that was computed from readings of the same slots.
struct DerivedSeries {
  std::string metric;  ///< total_power, rating_share, feed_share, phase_imbalance, voltage_deviation,
                       ///< frequency_deviation, supply_efficiency, heat_share or power_ratio
  Subject subject;
  std::vector<std::string> meters;  ///< sources of the computation, by name
  std::vector<Stretch> stretches;
};

/// A meter and its readings.
struct MeteredHistory {
  const Meter* meter = nullptr;
  const MeterHistory* history = nullptr;
};

/// A meter and its whole power at this moment, in W.
struct MeterPower {
  const Meter* meter = nullptr;
  double power_w = 0;
};

/// The power of all racks together, each by its own meter, or else the sum of its feeds, or else of its shelves. A feed
/// that is not among `powers` is left out.
double power_of_racks_w(std::span<const MeterPower> powers);

/// Everything that `meters` allow: the power of each rack (its own meter, or else the sum of its feeds, or else of its
/// shelves), power over rating, a feed over an equal part of the feeds of its rack, (max - mean) / mean of three
/// phases, deviation of voltage and frequency from the site's nominal ones, output over input of power supplies, heat
/// of a cooling unit, as water (heat_of_water_w), over the power of the rack that it serves (of all racks if it names
/// none), and the intake of the site over the power of all racks. The intake is the only meter of subject `meter`
/// without rack and nodes. A slot in which one of them has no reading has no figure.
std::vector<DerivedSeries> derived_series(std::span<const MeteredHistory> meters);

}  // namespace assay::meters
