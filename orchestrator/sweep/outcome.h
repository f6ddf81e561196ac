// outcome: state of each node by a check and a run of a sweep. Pure.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/sweep/ledger.h"
#include "orchestrator/sweep/pairs.h"

namespace assay::sweep {

/// Use of `node` by others, by the checks `ids` in `results`. A cell is taken as its value lies beside its limit,
/// without guard band: nothing is accepted by it.
struct Idleness {
  bool idle = false;   ///< every check has a value, and all are within their limits
  bool busy = false;   ///< at least one value is beyond its limit
  std::string reason;  ///< why not idle
};
Idleness idleness(const judge::Results& results, const std::vector<std::string>& ids, const std::string& node);

/// The nodes that are not to be measured, after the run of only the checks `ids`: busy, or not measured if no check has
/// a value. Nodes that are idle are not in it. With `interrupted` a node without a value was preempted.
std::vector<NodeVisit> not_idle(const judge::Run& run, const judge::Verdict& verdict,
                                const std::vector<std::string>& ids, bool interrupted);

/// Result of each node of `run`: measured when a probe other than those of the checks `ids` has a figure, nothing was
/// interrupted, and the checks, made last, show that no other program used the node meanwhile.
std::vector<NodeVisit> visits_of(const judge::Run& run, const judge::Verdict& verdict,
                                 const std::vector<std::string>& ids, bool interrupted);

/// Result of `pair` in `run`, which is of its two nodes: measured when both nodes were and a step of both has a
/// figure.
PairVisit pair_visit_of(const NightPair& pair, const judge::Run& run, const judge::Verdict& verdict,
                        const std::vector<std::string>& ids, bool interrupted);

/// Exit code of a sweep in which `visits` were due: 0 when all were measured or others used them; 3 when one was
/// or a pair was preempted, could not be measured, or is one of `findings`, the nodes that were missed too often.
int exit_code(const std::vector<NodeVisit>& visits, const std::vector<PairVisit>& pairs,
              const std::vector<std::string>& findings);

/// The first line for people: "night 2026-01-05: 38 of 40 due nodes measured, 1 busy, 1 not measured", and
/// of pairs "; 18 of 19 pairs measured, 1 preempted".
std::string summary(Night night, const std::vector<NodeVisit>& visits, const std::vector<PairVisit>& pairs);

}  // namespace assay::sweep
