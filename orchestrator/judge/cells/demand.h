// demand: the outcome of a requirement that judges a recorded condition.
#pragma once

#include <span>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/required_condition.h"

namespace assay::judge {

/// Sets outcome and reason of `result` by `states`, every different value that the attempts and their ranks recorded,
/// in their order; there is at least one:
///   pass           every value meets `demand`;
///   fail           every value misses it;
///   not_measured   no value was recorded;
///   inconclusive   some meet and some miss it, some records have no value, or one is not a version: all are named.
/// Numbers that differ, and on the same side of the demand, decide: a count of lanes may move, a demand on it not.
void judge_demand(const plan::RequiredCondition& demand, std::span<const ConditionSeen> states, Result& result);

}  // namespace assay::judge
