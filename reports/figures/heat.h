// heat: matrices of shaded cells, as inline SVG.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/figures/shade.h"

namespace assay::figures {

/// One cell of a matrix. Without one, nothing was planned.
struct HeatCell {
  std::size_t row = 0, column = 0;
  Shade shade = Shade::error;
  std::string text;  ///< the number in it; empty: none
};

/// Neighbouring rows or columns that belong together.
struct HeatBand {
  std::string name;
  std::size_t count = 0;
};

/// Rows or columns.
struct HeatAxis {
  std::string name;                 ///< kind of the labels
  std::vector<std::string> labels;  ///< one each
  std::vector<HeatBand> bands;      ///< in order, together as many as there are labels; empty: no bands
};

/// A matrix with at most kMostHeatPlaces rows and columns.
struct HeatMap {
  std::string title, description;  ///< its content, and the same as its text alternative
  HeatAxis rows, columns;
  std::vector<HeatCell> cells;      ///< at most one at a place
  std::vector<std::string> beside;  ///< lines below the legend: the worst, named
  bool margins = true;              ///< whether the results have a distance to their limits
};

/// More would be finer than paper shows: 64 cells over 85 mm of an A4 page.
inline constexpr std::size_t kMostHeatPlaces = 64;

/// The cells of a matrix of up to this many rows and columns have numbers.
inline constexpr std::size_t kMostNumberedPlaces = 12;

/// One matrix with labels or bands at its sides, and a legend of the shades that occur.
std::string heat_map(const HeatMap& map);

/// Several small matrices of one kind side by side, each under its own title, with one legend; `title` and
/// `description` are of all.
std::string heat_maps(const std::string& title, const std::string& description, const std::vector<HeatMap>& maps);

}  // namespace assay::figures
