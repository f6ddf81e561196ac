// site_outlets: whether the outlets that the site has for a node are those that rise when only it works.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/metering/site_readings.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The metric of power_feed that the judge joins: outlets that are wrong of a node.
inline constexpr std::string_view kOutletsWrong = "outlets_wrong";

/// For each node with outlets in the site: how many are wrong, each named with both nodes in words, or why that is not
/// known. An outlet is wrong that rose when only the node worked and is not the node's by the site, and one of the
/// node's that did not rise. Needs a load of shape turns; `order` are its nodes by rank.
std::map<std::string, std::expected<JoinedFigure, std::string>> outlets_wrong(const site::Site& site,
                                                                              const std::vector<std::string>& order,
                                                                              const HeldLoad& load,
                                                                              const std::map<int, Record>& watches);

}  // namespace assay::judge
