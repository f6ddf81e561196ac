// run_progress: how far a run has come, by its journal.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Progress of a run. An interrupted attempt has not ended.
struct RunProgress {
  std::size_t steps_ended = 0;  ///< steps with every attempt that they were to get so far
  int attempts = 0;             ///< planned, with those of the second stage once it has begun
  int attempts_ended = 0;
  plan::Stage stage = plan::Stage::first;
  int pass = 0, passes = 0;                     ///< the first pass of the stage that is not over, of so many
  std::size_t tests = 0;                        ///< extra tests of searches
  std::map<std::string, std::size_t> outcomes;  ///< word to number of attempts, tests among them
};

/// That of the run with this plan and journal.
RunProgress progress_of(const plan::Plan& plan, const Journal& journal);

}  // namespace assay::judge
