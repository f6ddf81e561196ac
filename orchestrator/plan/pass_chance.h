// pass_chance: how likely one cell passes, by how far its figure is beyond the limit and how figures scatter.
#pragma once

#include <compare>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
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

/// How a figure is compared with its limit: the guard band is a share of the figure, so it is wider above the limit
/// than below it; of ratios it is one of logarithms.
enum class Bound { lower, upper, ratio };

/// Attempts of one cell, and how many steps with how many cells each have them. The deviation between attempts is
/// pooled over the steps; below kFewestPooledSteps each cell has its own.
struct Repeats {
  int attempts = 3, more_attempts = 4;
  std::size_t steps = 1;
  double cells_per_step = 1;
  Bound bound = Bound::lower;
  auto operator<=>(const Repeats&) const = default;
  [[nodiscard]] double cells() const { return static_cast<double>(steps) * cells_per_step; }
};

/// The probability that the cells of one requirement pass. Every figure is normal around its own node's mean, is off by
/// an error of its node's instrument, and is judged by the mean of its attempts with Student's t at the risk, halved if
/// there are two stages.
///
/// First attempts of n figures have the mean m and the sum of squares s, all n + k of a second stage the mean x and the
/// sum t; s, the squares that second attempts add around their own mean, d = x - m and x are independent. So are
/// steps, given the deviation pooled over the first stage and that over both:
///   f       share of steps with a cell of m < g1: they are measured again, the others are kept
///   kept    all cells have m >= g1 and m >= g2
///   mended  some cell has m < g1, and all have x >= g3
/// g1 follows from the first pooled deviation, g2 and g3 from the second, in which K steps have added Q to the sum of
/// squares, relative to the means of their cells. A cell has its own deviation instead, and so its own g1, g2 or g3,
/// where s or t is above the limit of the judge's test: s, d and t are in few points, each with its g1 and g3; the
/// other cells are steady. s is relative to m, so cells with their own deviation have a lower m.
///   P = mean over the first deviation of  sum over K, Q of  w r,   w = binomial(N, K, f) q(Q),
///   r = (kept / (1 - f))^(N - K) (mended / f)^K p(Q) / q(Q)
/// where p and q are the densities of Q among mended steps and among all that are measured again: gamma densities with
/// their means and variances. Fleets that pass are some of those that w counts, so r is at most 1, and P too, as the
/// weights add up to 1 at most. The mean over the first deviation is one over quantiles of chi-squared, times the share
/// that the limit of each variance leaves in made-up fleets, the same ones each time. Below kFewestPooledSteps every
/// cell has its own deviation.
class ChanceToPass {
 public:
  /// `fleet`: its margin is not used.
  ChanceToPass(const HealthyFleet& fleet, const Repeats& repeats, double risk, const StatedUncertainty& stated);

  /// Logarithm of the probability that all cells pass: `bad` ones, in as many steps as there are, that miss the limit
  /// by exactly `short_by`, and the others, on nodes that are `margin` beyond it on average.
  [[nodiscard]] double log_all(double margin, double short_by = 0, double bad = 0) const;
  /// The probability that one cell passes.
  [[nodiscard]] double operator()(double margin) const;

 private:
  /// Margins beyond the limit from which means pass: g1, g2, g3; and the share of kept cells that need their own.
  struct Guards {
    double first = 0, kept = 0, all = 0, own_share = 0;
  };
  /// A share of the cells that have their own deviation in a stage: their g1 and g3, d, and the squares added.
  struct OwnPoint {
    double share = 0, first = 0, all = 0, d = 0, squares = 0;
    bool own_first = false, own_all = false;
  };
  /// Cells whose means beyond the limit are normal, with the deviations of m and x.
  struct Cells {
    double mean = 0;
    double usual = 0;  ///< mean of all cells of the fleet
    double of_first = 0, of_all = 0;
    std::vector<OwnPoint> own;  ///< with the probabilities of m >= g1 and x >= g3
  };
  /// Probabilities of one cell: kept; x >= g3; that and m < g1, with the moments of the squares that it adds.
  struct CellChance {
    double kept = 0, all = 0, mended = 0, first_moment = 0, second_moment = 0;
    double squares = 0;  ///< that one adds on average with x >= g3
  };
  /// Steps alike, with so many good and bad cells each.
  struct Steps {
    double count = 0, good = 0, bad = 0;
  };
  /// Probabilities of a step, and the squares that one adds that passes after more attempts.
  struct StepChance {
    double kept = 1, mended = 0, squares = 0, variance = 0;
  };
  /// Sums over the points of an integral: of fleets that pass, over exp(scale), and of all after the first stage. No
  /// point adds more to the one than to the other, so their ratio is a probability.
  struct Sums {
    double pass = 0, scale = -1e300, whole = 0;
    void add(double points, double log_pass);
  };
  /// Of steps without and with bad cells.
  using Chances = std::pair<StepChance, StepChance>;
  /// Both kinds of cells and of steps.
  struct Fleet {
    Cells good, bad;
    Steps without, with;  ///< bad cells
    double between = 0;   ///< deviation between attempts, as a share of the figures
  };
  /// The share of cells that have their own deviation, by attempts of each stage; the first one's logarithm changes
  /// with the ratio of the pooled variance to the one before, and with its degrees of freedom.
  struct UnsteadyShares {
    double first = 0, all = 0, by_ratio = 0, by_degrees = 0;
  };

  void take_pooled();
  void take_own(const UnsteadyShares& tails);
  [[nodiscard]] double unsteady_share(double own, double pooled, double wider) const;
  [[nodiscard]] double guard(double deviation, int attempts, double degrees) const;
  [[nodiscard]] Cells cells_of(double mean, double spread, double usual) const;
  [[nodiscard]] CellChance cell_chance(const Cells& cells, const Guards& guards) const;
  [[nodiscard]] StepChance step_chance(const Steps& steps, const CellChance& good, const CellChance& bad) const;
  /// log_all(), of the `root`-th root of the probability given each pooled deviation.
  [[nodiscard]] double log_mean(double margin, double short_by, double bad, double root) const;
  [[nodiscard]] Chances chances(double pooled, const Fleet& fleet, double more, double squares) const;
  [[nodiscard]] Chances chances(const Fleet& fleet, const Guards& guards) const;
  /// Steps that are kept and steps that are measured again.
  [[nodiscard]] Chances first_stage(double pooled, const Fleet& fleet) const;
  /// All pass of which `more` steps are measured again.
  [[nodiscard]] Sums with_more(double pooled, const Fleet& fleet, double more, const Chances& first) const;
  [[nodiscard]] double log_all_with(double pooled, const Fleet& fleet) const;

  HealthyFleet fleet_;
  Repeats repeats_;
  StatedUncertainty stated_;
  double risk_ = 0;             ///< of one stage
  std::vector<double> pooled_;  ///< the pooled variance over the true one, at equal weights; empty: none is pooled
  UnsteadyShares unsteady_;
  std::vector<OwnPoint> own_;  ///< of all cells, or of those that have one
};

}  // namespace assay::plan
