// conclude: from judged cells to the verdict of the whole.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Every departure from the method, in plan and journal order: quick parameters, requirements left out, resumptions,
/// companions that are not there, node events, attempts that did not simply run to their end.
std::vector<Deviation> deviations(const plan::Plan& plan, const Journal& journal);

/// The attempts that cells were judged without, one entry for each attempt and cause, in the order of the results.
std::vector<Deviation> set_aside_deviations(const Results& results);

/// Deviations of nodes whose records are outside of their attempts, as StepEvidence::outside_s has them.
std::vector<Deviation> clock_deviations(const std::map<std::string, double>& outside_s);

/// Fills counts, overall and reason of `verdict` from its results: accepted when every required cell passes, the run is
/// finished, and nothing of the profile was left out; rejected when a required cell fails; else incomplete. A
/// simulation is always incomplete, and its reason has the outcome that it would have.
void conclude(const plan::Plan& plan, bool finished, Verdict& verdict);

/// Adds the nodes and pairs found at fault, if any, to the reason of the whole.
void name_culprits(Verdict& verdict);

}  // namespace assay::judge
