// run_verdict: the door of the room: the verdict of a run from its plan, its journal and its evidence.
#pragma once

#include <expected>
#include <string>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Where a journal comes from. own: this process has just written it, and has chosen its second stage by the records
/// that it is judged by, so that the choice is not derived again.
enum class JournalOrigin { handed_in, own };

/// The judgement of every planned cell, and the findings of the run's searches: they are replayed over the extra tests
/// in the journal, and change no outcome. Refused: an attempt of a step that the plan does not have, a second stage
/// of a step that the first did not ask for, and a test that its search would not have asked for.
std::expected<Verdict, InputError> judge_run(const plan::Plan& plan, const std::string& plan_sha256,
                                             const Journal& journal, const EvidenceReader& evidence,
                                             JournalOrigin origin = JournalOrigin::handed_in);

/// The judgement of every planned cell and of the whole, without the searches.
Verdict judge(const plan::Plan& plan, const std::string& plan_sha256, const Journal& journal,
              const EvidenceReader& evidence);

}  // namespace assay::judge
