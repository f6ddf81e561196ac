// second_stage: which steps of a plan are measured again once all of them have had their planned attempts, and whether
// a journal has no others.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Step ids to the reason why the step is measured again: the first of its required cells of a figure that does not
/// pass. Of a step that has no further attempts in the plan there is none. Steps that are to be measured after the load
/// follow on each node that is loaded once more.
using SecondStage = std::map<std::string, std::string>;

/// The steps of the second stage after these `results` of the first one: a pure function, asked by the run, by the
/// simulation and by every later judgement.
SecondStage second_stage(const plan::Plan& plan, const Results& results);

/// Refuses a journal whose second stage measures a step that the attempts before it did not ask for.
std::optional<InputError> check_second_stage(const plan::Plan& plan, const Journal& journal,
                                             const EvidenceReader& evidence);

}  // namespace assay::judge
