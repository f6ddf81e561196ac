// server_counters: imported counters of a server in the attempts of the growing groups of a knee. Nothing is judged by
// them: the server's clock and numbers are its own.
#pragma once

#include <string>

#include "orchestrator/judge/evidence/attempts.h"
#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/judge/verdict.h"

namespace assay::imports {

/// A line for each figure that falls out at a number of nodes, with the counter of `import` that rose there most by the
/// rule of the knee's own counters. A sample counts for an attempt that contains all of it. Empty if `import` is of no
/// server, or no figure falls out.
std::string server_text(const judge::Import& import, const judge::Verdict& verdict, const judge::Attempts& attempts);

}  // namespace assay::imports
