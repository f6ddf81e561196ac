// level_inside: what a night makes of a series; shared by the files that implement LevelMetric.
#pragma once

#include <span>
#include <vector>

#include "orchestrator/drift/level.h"

namespace assay::drift {

struct LevelMetric::Seen {
  std::uint32_t slot = 0, cohort = 0;
  double x = 0, y = 0, e = 0, v = 0, T = 0, z = 0;
  std::size_t peers = 0;
  bool judged = false, constant = false, no_cliff = false, bad = false;
};

struct LevelMetric::Tonight {
  Day day = 0;
  LevelLimits limits;
  double rho = 0;
  std::span<const LevelRetest> retests = {};  ///< by slot
};

}  // namespace assay::drift
