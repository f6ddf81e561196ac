// fleet_page: one page for the whole fleet.
#pragma once

#include <string>

#include "reports/nightly/nights.h"

namespace assay::nightly {

/// Advice, the findings and flags with their reasons, coverage, and the map of nodes and nights.
std::string fleet_page(const Overview& overview, const drift::DriftReport& report);

}  // namespace assay::nightly
