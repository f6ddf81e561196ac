// next_step: what the reader of a verdict can do next.
#pragma once

#include <string>

#include "orchestrator/judge/overall/advice.h"

namespace assay::judge {

/// What the reader can do next, in one sentence; empty for a simulation.
std::string next_step(const Verdict& verdict, const Advices& advices);

}  // namespace assay::judge
