// site_readings: power by meter and outlet out of the records of the site's meters, as the rules of meters take it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probes/core/record.h"
#include "probes/meters/reading.h"

namespace assay::judge {

/// A meter by name and one of its outlets, 0 for the whole.
using MeterPoint = std::pair<std::string, int>;

/// Every reading of power in `watches`, by number of watch, at the middle of its slot, in order of time; with the
/// averaging and accuracy that the records state of the meter.
std::map<MeterPoint, std::vector<meters::MeterReading>> power_readings(const std::map<int, Record>& watches);

/// Doubts of the watches about a meter; nothing if it is none. A meter without a statement is doubtful.
std::optional<std::string> doubt_of_meter(const std::map<int, Record>& watches, const std::string& meter);

/// A load of which the parts are known: its shape and when it was held, in s since 1970 by the head's clock.
struct HeldLoad {
  std::string shape;
  double hold_s = 0, ramp_s = 0;  ///< its parameters
  double begin_s = 0, end_s = 0;
};

/// The load that rank 0's record dates and describes; nothing if it does not.
std::optional<HeldLoad> held_load(const Record& load, double begin_s, double end_s);

/// A figure that the judge joins from readings of several meters, and its meaning in words.
struct JoinedFigure {
  double value = 0;
  std::string words;
};

}  // namespace assay::judge
