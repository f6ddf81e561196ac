// run: executes a plan: agents, steps, companions, evidence, journal. The only stage that acts on nodes.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence_reader.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/run/progress.h"
#include "probes/core/units.h"

namespace assay::run {

/// How a plan is executed.
struct RunOptions {
  std::string directory;                           ///< the run directory; it holds plan.json
  std::string agent;                               ///< path of assay-node
  std::map<std::string, std::string> agents = {};  ///< the same for other machines, by uname -m
  bool resume = false;                             ///< continue the run of the existing journal
  int starts_at_once = 32;          ///< agents being started at the same time; an ssh session costs about 0.2 s of CPU
  std::optional<Seconds> deadline;  ///< from now; no step starts that would typically end later
  bool stop_on_fail = false;        ///< once a required cell has failed, no more steps start
  Seconds patience{30};             ///< time for reconnecting to a lost node before it is given up
  bool leaves_out_what_does_not_fit = false;  ///< in the space that is free on a node; otherwise that is an error
  judge::KeptRecords records = {};            ///< gets the records as they are read, each once, for the verdict
  bool kill_at_signal = false;                ///< the first signal kills running steps, as otherwise the second does
};

/// How a run ended. interrupted: by a signal; stopped: by its deadline, at the first failure, or after five attempts in
/// a row that broke for one cause. Both can be resumed, and a resumed run stops for no cause again.
enum class RunEnd { finished, interrupted, stopped };

/// Executes every step of `plan` that the journal does not record as ended, nodes in parallel, each node one step at a
/// time; a step of several nodes runs when all of them are free for it, and no step starts that would exceed the site's
/// power cap. Then locates the faulty node of each group that missed a limit, where the plan allows it. Nodes that
/// cannot be reached and steps that break are journalled, and the other steps continue. After the first SIGINT or
/// SIGTERM running steps finish and no more start; the second kills them. Errors: a probe at hand is not the planned
/// one; a run directory that another process writes to, that was begun without `resume`, or that cannot be written.
std::expected<RunEnd, InputError> run(const plan::Plan& plan, const std::string& plan_sha256,
                                      const std::vector<plan::Program>& programs, const RunOptions& options,
                                      Progress& progress);

}  // namespace assay::run
