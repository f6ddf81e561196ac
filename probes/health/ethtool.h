// ethtool: the counters that the driver of a network interface keeps.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::health {

/// Names and values of ETHTOOL_GSTATS, in the driver's order; empty if the interface is not there or has none. Values
/// beyond 63 bits are left out.
std::vector<std::pair<std::string, std::int64_t>> ethtool_counters(const std::string& interface);

}  // namespace assay::health
