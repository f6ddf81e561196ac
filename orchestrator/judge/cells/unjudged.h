// unjudged: faults in records that no requirement judges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Whether `requirement` judges `measured`, by a rank other than rank 0: another rank's name for the place that they
/// share does not matter.
bool is_judged_of_other(const Measurement& measured, const plan::Requirement& requirement);

/// A metric of kind fault that a record of `step` has above 0 if none of `requirements`, those of the step, judges it,
/// in one sentence; empty if there is none.
std::string unjudged_fault(const StepEvidence& step, const std::vector<const plan::Requirement*>& requirements,
                           const Description& probe);

/// Whether a complete record of `step` always has the figure that `requirement` judges: of nodes, because of a kind of
/// part a machine may have none. It then is missing for another reason than that the machine does not report it.
bool is_owed(const Description& probe, const plan::Requirement& requirement, const plan::Step& step);

/// The size in B that `planned` measures at and no record of `pool` has; "every" judges only the sizes recorded.
std::optional<std::int64_t> size_not_measured(const plan::Step& planned, const plan::Requirement& requirement,
                                              const Pool& pool);

}  // namespace assay::judge
