// run: carries a plan out: agents, steps, companions, evidence, journal. The only stage with effects.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/plan.h"
#include "orchestrator/progress.h"

namespace assay {

/// Where and with what a plan is carried out.
struct RunOptions {
  std::string directory;   ///< the run directory; it holds plan.json
  std::string agent;       ///< path of our assay-node
  bool resume = false;     ///< go on with the journal that is there
  int starts_at_once = 32; ///< agents being started at the same time; an ssh session costs about 0.2 s of CPU
};

/// How a run ended.
enum class RunEnd { finished, interrupted };

/// Carries out every step of `plan` that the journal does not hold as ended, nodes side by side, each node one step at a
/// time; a step of several nodes runs when all of them are free for it. Nodes that cannot be reached and steps that break are journalled and the rest goes on. The first SIGINT
/// or SIGTERM lets running steps end and starts no more; the second kills them. Errors: a probe at hand is not the
/// planned one, a run directory that is in use, begun without `resume`, or cannot be written.
std::expected<RunEnd, InputError> run(const Plan& plan, const std::string& plan_sha256,
                                      const std::vector<Program>& programs, const RunOptions& options, Progress& progress);

}  // namespace assay
