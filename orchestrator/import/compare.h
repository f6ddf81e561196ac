// compare: another tool's figures next to those of a run that are of the same quantity. For reading; nothing is judged
// by it.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/imported.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::imports {

/// One imported figure and the cells of one requirement that hold the same quantity, at the same size and of the same
/// operation.
struct Beside {
  judge::Figure theirs;
  std::string requirement, metric;             ///< "n01.bw", "verbs_bandwidth bandwidth_forward median"
  std::size_t cells = 0;                       ///< those with a value
  double lowest = 0, median = 0, highest = 0;  ///< of the cells' values, in the figure's unit
};

/// The pairs of `import` in the order of its figures, then of the plan's requirements; figures without a counterpart
/// come in none.
std::vector<Beside> beside(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict);

/// A table of `import` beside the run, for people, with what has no counterpart counted. Says that the tool's figures
/// are not vouched for.
std::string beside_text(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict);

}  // namespace assay::imports
