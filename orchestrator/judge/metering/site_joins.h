// site_joins: figures that no meter has, joined from the readings of several and from the record of the load.
#pragma once

#include <map>
#include <vector>

#include "orchestrator/judge/metering/site_efficiency.h"
#include "orchestrator/judge/metering/site_evidence.h"

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

}  // namespace assay::judge
