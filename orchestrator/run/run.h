// run: carries a plan out: agents, steps, companions, evidence, journal. The only stage with effects.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "orchestrator/run/progress.h"
#include "probes/core/units.h"

namespace assay::run {

/// Where and with what a plan is carried out.
struct RunOptions {
  std::string directory;            ///< the run directory; it holds plan.json
  std::string agent;                ///< path of our assay-node
  bool resume = false;              ///< go on with the journal that is there
  int starts_at_once = 32;          ///< agents being started at the same time; an ssh session costs about 0.2 s of CPU
  std::optional<Seconds> deadline;  ///< from now; no step starts that is not typically over by then
  bool stop_on_fail = false;        ///< no step starts any more once a required cell has failed
  Seconds patience{30};             ///< how long a node that was lost is tried again before it is given up
};

/// How a run ended. interrupted: by a signal; stopped: by its deadline or at the first failure. Both can be resumed.
enum class RunEnd { finished, interrupted, stopped };

/// Carries out every step of `plan` that the journal does not hold as ended, nodes side by side, each node one step at
/// a time; a step of several nodes runs when all of them are free for it, and none while the site's power cap would be
/// passed. Then, where groups fell short and the plan allows it, searches who is at fault. Nodes that cannot be reached
/// and steps that break are journalled and the rest goes on. The first SIGINT or SIGTERM lets running steps end and
/// starts no more; the second kills them. Errors: a probe at hand is not the planned one; a run directory that another
/// process writes to, that was begun without `resume`, or that cannot be written.
std::expected<RunEnd, InputError> run(const plan::Plan& plan, const std::string& plan_sha256,
                                      const std::vector<plan::Program>& programs, const RunOptions& options,
                                      Progress& progress);

}  // namespace assay::run
