// verdict_table: the verdict as people read it on a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "orchestrator/judge/overall/advice.h"

namespace assay::judge {

/// How a verdict is shown.
struct TableStyle {
  bool every_cell = false;  ///< a line for each cell, instead of one for each requirement
  std::size_t width = 0;    ///< columns of the terminal; 0: lines have no end
  bool colour = false;      ///< outcomes in colours
};

/// Failures first: one line for each requirement (how many of its cells pass, the worst value, the acceptance limit,
/// the outcome), or for each cell in the plan's order; then the cells that do not pass and why, the nodes at fault, the
/// deviations, and the whole. What `advices` know of a cell or a node at fault follows it, and the most urgent
/// action is the next step. Ends with a newline. Control characters from nodes are replaced.
std::string verdict_table(const Verdict& verdict, const TableStyle& style = {}, const Advices& advices = {});

}  // namespace assay::judge
