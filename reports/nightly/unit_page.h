// unit_page: one page for a unit, or for all units of a node.
#pragma once

#include <string>
#include <vector>

#include "reports/nightly/nights.h"

namespace assay::nightly {

/// Of each unit: its state, its flags with every number behind them, its metrics over nights, its events. `name` is the
/// request; `most` the nights that are shown.
std::string unit_page(const std::string& name, const std::vector<UnitTrend>& units, const drift::DriftReport& report,
                      std::size_t most);

/// Every number behind a flag and its re-tests, as HTML.
std::string flag_details(const drift::Flag& flag, drift::Date today);

}  // namespace assay::nightly
