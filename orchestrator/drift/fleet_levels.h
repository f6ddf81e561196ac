// fleet_levels: the level that all units of a kind share, which no unit's own chart shows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/drift/level.h"

namespace assay::drift {

/// State of the common level of one metric on one kind of unit.
struct FleetLevel {
  Reference reference;  ///< of medians over the units, by night
  double c_small = 0, c_large = 0;
  double effect = 0;  ///< logarithm, of the last night, against the reference
  Day since = kNever, last_day = kNever;
  bool held = false;
  double units = 0;
  bool has_accepted = false;
  double accepted_effect = 0;  ///< against the signed acceptance
};

/// Takes tonight's median `level` of `units` units.
void move_level(FleetLevel& kept, Day day, double level, std::size_t units, const Policy& policy, double h_small,
                double h_large);

/// By how much tonight must be below the signed acceptance, as a logarithm: the smallest effect that matters, and what
/// one night of acceptance is uncertain by.
double acceptance_limit(const FleetLevel& kept, double min_effect);

/// The findings of one metric; `levels` by kind of unit.
std::vector<FleetFinding> fleet_findings(const std::string& metric, const std::map<std::string, FleetLevel>& levels,
                                         double min_effect, Day tonight);

}  // namespace assay::drift
