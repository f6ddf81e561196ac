// judge: the judgement of the planned cells, as a pure function. The verdict of a run is judge_run (run_verdict.h).
#pragma once

#include <string>

#include "orchestrator/judge/evidence.h"
#include "orchestrator/judge/verdict.h"

namespace assay::judge {

/// Judges every planned cell, without the searches. Never passes by omission: no record, no metric, no condition, no
/// samples each have an outcome that is not pass. Extra tests of searches have no part in it.
Verdict judge(const plan::Plan& plan, const std::string& plan_sha256, const Journal& journal,
              const EvidenceReader& evidence);

/// The results alone.
Results judge_cells(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence);

/// The results that the attempts of the first stage alone give.
Results judge_first_stage(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence);

/// Results of `cells`, all of one `step`, from a journal that need hold no more than the step's attempts and what its
/// nodes said of themselves. What a limit shares with the fleet's median stays inconclusive, because the fleet is not
/// in it.
Results judge_step(const plan::Plan& plan, const plan::Step& step, const std::vector<plan::Cell>& cells,
                   const Journal& part, const EvidenceReader& evidence);

}  // namespace assay::judge
