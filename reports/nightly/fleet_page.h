// fleet_page: one page for the whole fleet, with a map of nodes and nights.
#pragma once

#include <string>

#include "reports/nightly/nights.h"

namespace assay::nightly {

/// Advice, the findings and flags with their reasons, coverage, and the map of nodes and nights.
std::string fleet_page(const Overview& overview, const drift::DriftReport& report);

/// Up to so many nodes have a row each; more are shown by leaf, by rack, or several in a row.
inline constexpr std::size_t kMostRows = 400;
/// Nodes in a row where neither leaves nor racks are known.
inline constexpr std::size_t kNodesPerRow = 32;

/// A row for each node or group of nodes, a column for each night, and a legend of the states that occur. Neighbouring
/// cells of one state are one rectangle.
std::string nights_map(const std::vector<drift::Date>& nights, const std::vector<NodeRow>& rows,
                       const std::string& title);

}  // namespace assay::nightly
