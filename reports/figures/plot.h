// plot: distributions of one run or of two as inline SVG, drawn the same on every machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/statistics.h"

namespace assay::figures {

/// One subject in a figure; numbers in the base unit of the plot.
struct PlotRow {
  std::string label;
  std::vector<double> samples;
  std::optional<double> value;  ///< the statistic judged
  std::optional<Interval> interval;
  std::optional<double> limit_low, limit_high, acceptance_low, acceptance_high;
  std::string outcome;  ///< the word shown at the right end
  bool passes = false;
  bool fails = false;  ///< it misses its limit or broke; else it is not known
};

/// A figure about one requirement.
struct Plot {
  std::string title;  ///< quantity of the axis; also read aloud by screen readers
  std::string unit;   ///< base unit
  std::vector<PlotRow> rows;
};

/// At most this many subjects are drawn one a row; more are drawn as one distribution.
inline constexpr std::size_t kMostStripRows = 16;

/// Up to kMostStripRows subjects: each sample a dot, the value a bar, the interval a bracket, limits a solid line, the
/// guard band shaded up to the dashed acceptance limit. At most 200 dots a row, evenly chosen.
std::string strip_plot(const Plot& plot);

/// The empirical distribution of the subjects' values, with the limits of the first row; values that do not pass are
/// crosses, the others dots. Of more than 500 subjects every so many that pass is drawn, and every one that does not.
std::string distribution_plot(const Plot& plot);

/// Values of two runs in the base unit `unit`.
struct TwoDistributions {
  std::string title, unit;
  std::vector<double> a, b;                ///< not empty both
  std::optional<double> limit_a, limit_b;  ///< the limit of the first subject of each, where all have the same
};

/// Steps of both, A dashed and B solid (style sheet: of-a, of-b), with their limits.
std::string two_distributions(const TwoDistributions& both);

}  // namespace assay::figures
