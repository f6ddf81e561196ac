// verdict_table: the verdict as people read it on a terminal.
#pragma once

#include <string>

#include "orchestrator/judge/verdict.h"

namespace assay::judge {

/// One line for each cell (requirement, subject, value, acceptance limit, outcome), the reasons of those that do not
/// pass, and the whole; ends with a newline. Control characters from nodes are replaced.
std::string verdict_table(const Verdict& verdict);

}  // namespace assay::judge
