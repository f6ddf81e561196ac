// ratio_to_others: how each of several stands to the rest.
#pragma once

#include <vector>

namespace assay::train {

/// Each value over the median of the others; 1 where there is no other.
std::vector<double> ratio_to_others(const std::vector<double>& values);

}  // namespace assay::train
