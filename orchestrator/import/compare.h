// compare: another tool's figures next to the results of a run for the same quantity. Nothing is judged by it.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::imports {

/// One imported figure and the cells of one requirement that hold the same quantity and statistic, at the same size and
/// of the same operation. Where another setting differs (block size, pattern, depth, type, nodes, …), or the figure has
/// `conditions`, they are not comparable and no number is given.
struct Comparison {
  std::size_t figure = 0;                      ///< its place among the import's
  std::string requirement, metric;             ///< "n01.bw", "verbs_bandwidth bandwidth_forward median"
  std::size_t cells = 0;                       ///< those with a value
  double lowest = 0, median = 0, highest = 0;  ///< of the cells' values, in the figure's unit
  std::string differs;  ///< not comparable: the first setting that is another, in the tool's words; else empty
};

/// The pairs of `import` in the order of its figures, then of the plan's requirements; figures without a counterpart
/// come in none.
std::vector<Comparison> compare(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict);

/// A table of `import` and the run for people, with the number of figures without a counterpart. It states that
/// imported figures are not judged.
std::string comparison_text(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict);

}  // namespace assay::imports
