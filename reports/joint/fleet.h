// fleet: limits of the fleet, judged over the nodes of all parts.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "reports/joint/part.h"

namespace assay::joint {

/// The results of every cell whose limit refers to the fleet, judged again from the evidence of all parts as one fleet,
/// by the function that judges a run. Empty if the profile has no such limit. Refused: a probe of other description in
/// one of the parts, because its figures mean something else. The parts have passed check_together(expand).
std::expected<judge::Results, InputError> judge_fleet(const std::vector<Part>& parts);

}  // namespace assay::joint
