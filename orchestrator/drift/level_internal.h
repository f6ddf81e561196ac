// level_internal: the figures of one series in one night; shared by the files that implement LevelMetric. The method is
// described in level.cpp.
#pragma once

#include <optional>
#include <span>

#include "orchestrator/drift/level.h"

namespace assay::drift {

/// One visited series. Smaller is worse, but for `score`.
struct LevelMetric::Seen {
  std::uint32_t slot = 0, cohort = 0;
  double figure = 0;        ///< logarithm of the value, without the partner's part
  double adjusted = 0;      ///< `figure` without the cohort's shift; Arithmetic::x
  double residual = 0;      ///< `adjusted` less the mean of the reference
  double variance = 0;      ///< expected of a single residual
  double standardised = 0;  ///< residual in its own standard deviations, without the part that the last one predicts
  double score = 0;         ///< standard normal for a healthy unit, larger is worse
  std::size_t peers = 0;    ///< judged series of the cohort that are not constant
  bool judged = false;      ///< its charts run: enough visits, and its reference is not held
  bool learning = false;    ///< fewer visits than the warm-up has
  bool constant = false;    ///< its variance is 0 but for rounding
  bool no_cliff = false;    ///< the unit was moved tonight
  bool bad = false;         ///< the score reaches that of the intermittent rule
  /// The level of the cohort's units, where a new one is below it; their number is n.
  std::optional<Reference> fleet = {};
};

/// Common state of all series of a night.
struct LevelMetric::Tonight {
  Day day = 0;
  LevelLimits limits;
  double rho = 0;                             ///< serial correlation of residuals
  std::span<const LevelRetest> retests = {};  ///< by slot
};

}  // namespace assay::drift
