// plant: levels of load that the tests of meters hold in the simulated plant.
#pragma once

#include <vector>

#include "orchestrator/simulate/plant.h"

namespace assay::simulate {

/// Idle, half and full load of five minutes each, after five minutes of settling before each.
inline constexpr double kSettle_s = 300, kHold_s = 300;
inline std::vector<double> level_begins() { return {kSettle_s, 3 * kSettle_s, 5 * kSettle_s}; }
inline constexpr double kEnd_s = 6 * kSettle_s;
inline std::vector<LoadChange> three_levels() { return {{0, 0}, {2 * kSettle_s, 0.5}, {4 * kSettle_s, 1}}; }

}  // namespace assay::simulate
