// offload_chart: the share of traffic that adapters forwarded, over the time of the run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/journal.h"
#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// A line for each node: the condition offloaded_share of each record of the steps of `results` that the node took part
/// in, at the begin of its attempt. Drawn with the first requirement of the same measurement; empty if no node has
/// two points. A step with an attempt that exited and has no record in `records` is left out.
Chart offload_chart(const plan::Plan& plan, const judge::Journal& journal, const plan::Requirement& requirement,
                    const std::vector<const judge::Result*>& results,
                    const std::map<std::string, std::vector<Record>>& records);

}  // namespace assay::figures
