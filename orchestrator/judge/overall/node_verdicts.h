// node_verdicts: the verdict of each single node. The whole needs all of them; a buyer may take over those that pass.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// One verdict for each node of the site, in the site's order, from the results, the searches and the rule of the whole
/// in `verdict`. A cell of several nodes counts for all of them; if it does not pass and a search or the pairs name the
/// nodes at fault, it counts for those named, leaves open the undecided ones, and does not count for the others.
/// Nothing is accepted or rejected where the whole could not be: in a rehearsal, a part of a profile, an unfinished run
/// or a simulation, whose reasons have the outcome that it would have.
std::vector<NodeVerdict> node_verdicts(const plan::Plan& plan, bool finished, const Verdict& verdict);

/// "38 of 40 nodes accepted, 1 rejected, 1 incomplete"; without a full stop.
std::string fleet_statement(const std::vector<NodeVerdict>& nodes);

}  // namespace assay::judge
