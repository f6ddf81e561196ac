// acceptance: how likely a plan accepts a fleet that is as good as it should be.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Assumed figures of a fleet without fault, as shares of each limit.
struct HealthyFleet {
  double margin = 0.04;          ///< of the mean node above its limit
  double between_nodes = 0.005;  ///< standard deviation between nodes
  double between_runs = 0.005;   ///< standard deviation between attempts on one node
};

/// Reads "4,0.5,0.5": the three in per cent. Errors: another form, or a number out of 0 to 100.
std::expected<HealthyFleet, InputError> healthy_fleet(std::string_view text, const std::string& where);

/// Relative uncertainties that the description of a metric and the profile state.
struct StatedUncertainty {
  double instrument = 0;
  double between_runs = 0;     ///< least standard deviation between runs
  double reproducibility = 0;  ///< of the profile, for a single attempt; 0: not stated
  auto operator<=>(const StatedUncertainty&) const = default;
};

/// Outcome of a plan for a healthy fleet.
struct AcceptanceChance {
  std::size_t cells = 0;      ///< required medians and percentiles, every GPU, drive, … of a node counted
  std::size_t unplanned = 0;  ///< required cells that nothing can measure: with one of them nothing is accepted
  double accepted = 1;        ///< probability that all of them pass in one of the two stages
};

/// The chance for `plan`. Every figure is normal around its own node's mean and judged by the mean of its attempts with
/// Student's t at the profile's risk, halved if there are two stages; the deviation between attempts is known from all
/// subjects of the requirement together. Counts and extremes do not fail in a healthy fleet.
AcceptanceChance acceptance_chance(const Plan& plan, const HealthyFleet& fleet);

/// The probability that one cell passes: the integral over its node's mean and the mean of its first attempts.
/// `stated`: what the guard band has on top, and what its deviation between attempts is at least. `subjects`: over
/// which that deviation is pooled.
double chance_to_pass(const HealthyFleet& fleet, int attempts, int more_attempts, double risk,
                      const StatedUncertainty& stated, double subjects);

}  // namespace assay::plan
