// pass_chance: how likely one cell passes, by how far its figure is beyond the limit and how figures scatter.
#pragma once

#include <compare>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/error.h"

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

/// Attempts of one cell, and of how many steps the deviation between them is pooled. Below kFewestPooledSteps each cell
/// has its own.
struct Repeats {
  int attempts = 3, more_attempts = 4;
  std::size_t steps = 1;
  auto operator<=>(const Repeats&) const = default;
};

/// The probability that one cell passes, for nodes whose mean is this far beyond the limit on average. Every figure is
/// normal around its own node's mean and judged by the mean of its attempts with Student's t at the risk, halved if
/// there are two stages. A pooled deviation counts as known; a cell's own follows from its attempts, in 20,000 made-up
/// cells, the same ones each time.
class ChanceToPass {
 public:
  /// `fleet`: its margin is not used.
  ChanceToPass(const HealthyFleet& fleet, const Repeats& repeats, double risk, const StatedUncertainty& stated);
  [[nodiscard]] double operator()(double margin) const;

 private:
  [[nodiscard]] double pooled(double margin) const;

  HealthyFleet fleet_;
  Repeats repeats_;
  double first_ = 0, second_ = 0;  ///< guard bands of the stages, where they are known
  std::vector<double> needed_;     ///< else: the margin from which each of the made-up cells passes, ascending
};

}  // namespace assay::plan
