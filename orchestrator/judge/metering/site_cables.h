// site_cables: which port of which node a switch reports at its ports, held against the cabling of the site.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "orchestrator/judge/metering/site_readings.h"
#include "orchestrator/site/site.h"

namespace assay::judge {

/// The metric of switch_counters that the judge joins.
inline constexpr std::string_view kCablingWrong = "cabling_wrong";

/// For every port of a switch that the site cables to a node: 1, with the contradiction in words, where the switch
/// reports another port of a node of the site, 0 where it reports that one; or why that is not known.
std::map<Subject, std::expected<JoinedFigure, std::string>> cabling_wrong(const site::Site& site,
                                                                          const std::map<int, Record>& watches);

}  // namespace assay::judge
