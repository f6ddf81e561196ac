// parts_bars: parts of a time, one bar for each row, its parts in order.
#pragma once

#include <string>
#include <vector>

namespace assay::figures {

/// One bar. `parts` in s, none below 0, as many as the figure has names.
struct PartsRow {
  std::string label;
  std::vector<double> parts;
};

/// A figure of bars; time runs to the right from 0.
struct PartsBars {
  std::string title, description;
  std::string axis;                ///< meaning of time and its 0: "s since the fault"
  std::vector<std::string> names;  ///< of the parts, at most kMostParts
  std::vector<PartsRow> rows;      ///< from the top
};

/// Distinguishable colours.
inline constexpr std::size_t kMostParts = 5;
/// More rows are no figure.
inline constexpr std::size_t kMostPartsRows = 24;

/// Squares of the parts' colours with their names, in a row; the last one `height_of_last` high.
std::string legend_of_parts(const std::vector<std::string>& names, double height_of_last = 10);

/// The figure as inline SVG, a legend above, the sum of each bar at its end; empty without a row above 0.
std::string parts_svg(const PartsBars& bars);

}  // namespace assay::figures
