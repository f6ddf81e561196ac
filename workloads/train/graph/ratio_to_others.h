// ratio_to_others: each of several values over the median of the rest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace assay::train {

/// Each value over the median of the others; 1 if there is no other.
inline std::vector<double> ratio_to_others(const std::vector<double>& values) {
  std::vector<double> shares(values.size(), 1);
  if (values.size() < 2) return shares;
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const std::size_t others = sorted.size() - 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto own = static_cast<std::size_t>(std::ranges::lower_bound(sorted, values[i]) - sorted.begin());
    const auto other = [&](std::size_t index) { return sorted[index < own ? index : index + 1]; };
    const double middle = others % 2 == 1 ? other(others / 2) : (other(others / 2 - 1) + other(others / 2)) / 2;
    shares[i] = values[i] / middle;
  }
  return shares;
}

}  // namespace assay::train
