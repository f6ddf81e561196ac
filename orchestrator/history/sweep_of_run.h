// sweep_of_run: figures of the units that a judged run measured.
#pragma once

#include <string>

#include "orchestrator/history/history.h"
#include "orchestrator/judge/evidence/journal.h"

namespace assay::history {

/// How a run is taken.
struct SweepOptions {
  bool retest = false;   ///< its visits are re-tests
  int utc_offset_s = 0;  ///< of the local time at its start
  bool with_raw = true;  ///< keep its records
};

/// Why a run left `node` without a figure: preempted where the run was killed in an attempt that the node led, as a
/// sweep is that gives way, and not measured else. Decided by the outcome of attempts; their reasons are for people.
drift::VisitState state_without_figures(const judge::Journal& journal, const std::string& node);

/// Reads the run in `directory`, judges it anew (judge_run), and takes the figure of every measured metric on every
/// unit. A unit is named by its serial number, or by its place ("drive:n01/nvme0n1"): of a guest's parts, and without a
/// serial number that can be one (judge::is_unique). A run that does not belong to its evidence is damaged evidence
/// (exit code 4).
Result<Sweep> sweep_of_run(const std::string& directory, const SweepOptions& options);

}  // namespace assay::history
