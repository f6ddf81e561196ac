// conditions: whether the conditions that a requirement demands were recorded beside its number, and met.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/record.h"

namespace assay::judge {

/// What was seen of each condition that `requirement` demands of records of `step`, in its order. A demand is met when
/// every one of `records` recorded it, on `subject` or on the node, and each value fits; an absent one is not met. What
/// `others`, the records of the other ranks, say of it must fit too, where they say anything. What is demanded to be as
/// `site` says is looked up for the node of each record: of a subject nic the port of that name, else the port of the
/// step's rail; what the site does not tell is not met.
std::vector<ConditionSeen> check_demands(const site::Site& site, const plan::Step& step,
                                         const plan::Requirement& requirement, const Subject& subject,
                                         std::span<const Record* const> records, std::span<const Record* const> others);

/// The first that is not met, in one sentence; empty when all are.
std::string first_unmet(std::span<const ConditionSeen> seen);

}  // namespace assay::judge
