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

/// The probability that the cells of one requirement pass. Every figure is normal around its own node's mean, is off by
/// an error of its node's instrument, and is judged by the mean of its attempts with Student's t at the risk, halved if
/// there are two stages. The deviation between attempts is pooled over the steps, so that all cells are judged with the
/// same chance error of it; the second stage, which measures those that did not pass, makes it larger. With as many
/// cells as steps, up to 32, the sum over how many of them have a second stage is taken; of more, their expected
/// number. Without a second stage some cells have their own deviation, as the judge's test of it gives. Below
/// kFewestPooledSteps each cell has its own, which follows from its attempts in 20,000 made-up cells, the same ones
/// each time.
class ChanceToPass {
 public:
  /// `fleet`: its margin is not used.
  ChanceToPass(const HealthyFleet& fleet, const Repeats& repeats, double risk, const StatedUncertainty& stated);

  /// Logarithm of the probability that `good` cells, on nodes that are this far beyond the limit on average, and `bad`
  /// ones, that miss it by exactly `short_by`, all pass.
  [[nodiscard]] double log_all(double margin, double good, double short_by = 0, double bad = 0) const;
  /// The probability that one cell passes.
  [[nodiscard]] double operator()(double margin) const;

 private:
  /// Margins of a mean beyond the limit with which it passes: of the first attempts, when the first stage is judged and
  /// when the whole is, and of all.
  struct Guards {
    double first = 0, kept = 0, all = 0;
    double factor = 0;               ///< of `all`: Student's t
    double others = 0, degrees = 1;  ///< sum of squares behind `all` but for the difference of the cell's two stages
  };
  /// Cells whose means beyond the limit are normal.
  struct Cells {
    double count = 0, mean = 0, spread = 0;
  };
  struct Failing {
    double share = 0, squares = 0;
  };
  struct Passing {
    double kept = 0, mended = 0;
  };
  void find_unsteady();
  void make_up_pooled();
  [[nodiscard]] double guard(double deviation, int attempts, double degrees) const;
  [[nodiscard]] Guards guards_after(double first, double deviation, double more, double squares) const;
  [[nodiscard]] Failing failing(const Cells& cells, double guard) const;
  [[nodiscard]] Passing passing(const Cells& cells, const Guards& guards, bool few = false) const;
  [[nodiscard]] double passes_unsteady(const Cells& cells) const;
  [[nodiscard]] double passes_alone(double mean) const;
  [[nodiscard]] double log_all_with(double deviation, const Cells& good, const Cells& bad) const;
  /// The mean of `of_node` over the nodes of these cells.
  template <class OfNode>
  [[nodiscard]] double over(const Cells& cells, OfNode of_node) const;

  HealthyFleet fleet_;
  Repeats repeats_;
  StatedUncertainty stated_;
  double risk_ = 0;               ///< of one stage
  double unsteady_share_ = 0;     ///< of cells that have a deviation of their own
  std::vector<double> pooled_;    ///< the pooled deviation over the true one, at equal weights; empty: of many steps
  std::vector<double> unsteady_;  ///< variances of a cell over the pooled one with which it has its own
  std::vector<double> needed_;    ///< of made-up cells: the margins from which they pass, ascending; empty: pooled
};

}  // namespace assay::plan
