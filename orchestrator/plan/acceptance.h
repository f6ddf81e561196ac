// acceptance: how likely a plan accepts a fleet: one that is as good as it should be, and those that are not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/pass_chance.h"
#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Outcome of a plan for a healthy fleet.
struct AcceptanceChance {
  std::size_t cells = 0;      ///< required medians and percentiles, every GPU, drive, … of a node counted
  std::size_t unplanned = 0;  ///< required cells that nothing can measure: with one of them nothing is accepted
  double accepted = 1;        ///< probability that all of them pass in one of the two stages
};

/// The chance for `plan`. Counts and extremes do not fail in a healthy fleet.
AcceptanceChance acceptance_chance(const Plan& plan, const HealthyFleet& fleet);

/// A point of a curve: the probability of acceptance of a fleet with `bad_nodes` whose other rates are `beyond`.
struct CurvePoint {
  double beyond = 0;
  std::size_t bad_nodes = 0;
  double accepted = 0;
};

/// The consequences of an agreement for a plan. Probabilities have 12 digits and are the same on every processor.
struct RiskReached {
  std::size_t cells = 0;                 ///< as AcceptanceChance
  std::size_t unplanned = 0;             ///< likewise
  std::size_t bad_nodes = 0;             ///< of the buyer's fleet
  double vendor_risk = 0;                ///< that the vendor's fleet is not accepted
  double buyer_risk = 0;                 ///< that the buyer's fleet is accepted
  std::vector<CurvePoint> by_margin;     ///< all rates at once beyond their limits, or short of them
  std::vector<CurvePoint> by_bad_nodes;  ///< nodes that miss one limit by the agreed shortfall
  std::size_t nodes_to_draw = 0;  ///< fewest nodes, drawn at random, of which the buyer's fleet is accepted with at
                                  ///< most the agreed risk; 0: even all do not do
};

/// The risks of `plan` and its operating characteristic, as `agreed` assumes figures to scatter. A bad node misses one
/// limit, that with which it is accepted most often, and by which the node is judged, not a pair or group of it.
RiskReached reached_risk(const Plan& plan, const AgreedRisk& agreed);

/// Refuses a plan whose agreement it does not keep, with the attempts or the margin that would.
std::optional<InputError> check_agreement(const Plan& plan);

/// The agreement and what the plan makes of it, for people; empty if nothing was agreed on.
std::string risk_text(const Plan& plan);

}  // namespace assay::plan
