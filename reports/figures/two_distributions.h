// two_distributions: the empirical distributions of two runs over one axis, as inline SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::figures {

/// Values of two runs in the base unit `unit`.
struct TwoDistributions {
  std::string title, unit;
  std::vector<double> a, b;                ///< not empty both
  std::optional<double> limit_a, limit_b;  ///< the limit of the first subject of each, where all have the same
};

/// Steps of both, A dashed and B solid (style sheet: of-a, of-b), with their limits.
std::string two_distributions(const TwoDistributions& both);

}  // namespace assay::figures
