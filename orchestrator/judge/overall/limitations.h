// limitations: limits of a verdict whose cells pass.
#pragma once

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Adds to the deviations of `verdict`, whose results are known, on how many subjects each requirement that is judged
/// where the machine reports its figure was not, which versions pass by advisories that do not speak of them, and which
/// required limits only the machines themselves set, without a checked absolute one; the sentence on the latter ends
/// the reason of the whole, too.
void claim_less(const plan::Plan& plan, Verdict& verdict);

/// Whether `deviation` is one of those.
bool claims_less(const Deviation& deviation);

}  // namespace assay::judge
