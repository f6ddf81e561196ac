// site_joins: figures that no meter has, joined from the readings of several and from the record of the load; whether
// the outlets and the cabling that the site has are those that meters and switches show.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/metering/site_efficiency.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/judge/metering/site_readings.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/site/site.h"

namespace assay::judge {

/// One attempt of a load with the records of its meters. Its references must outlive it.
struct MeteredAttempt {
  const plan::Plan& plan;
  const plan::Step& step;
  const Record& load;  ///< rank 0's
  const std::map<int, Record>& watches;
  double begin_s = 0, end_s = 0;  ///< when the load was held, s since 1970
};

/// Adds the joined figures that a requirement of the step asks for to `made`; their meaning, or why they are missing,
/// to `site`.
void join_figures(const MeteredAttempt& attempt, const std::vector<RackPower>& racks, Record& made, SiteEvidence& site);

/// The metric of switch_counters that the judge joins.
inline constexpr std::string_view kCablingWrong = "cabling_wrong";

/// For every port of a switch that the site cables to a node: 1, with the contradiction in words, where the switch
/// reports another port of a node of the site, 0 where it reports that one; or why that is not known.
std::map<Subject, std::expected<JoinedFigure, std::string>> cabling_wrong(const site::Site& site,
                                                                          const std::map<int, Record>& watches);

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
