// missing_parts: parts that a run looked for on a node and did not find.
#pragma once

#include <vector>

#include "orchestrator/history/history.h"
#include "orchestrator/history/sqlite.h"

namespace assay::history {

/// A visit in the state `missing` of every known part of a node that `sweep` should have found and did not: a probe
/// that read the part before ended normally there, or found nothing to measure, and its record now has no part of this
/// kind, or one that the same run listed with this part before. A probe of which each run reads one part by choice,
/// such as the drive of a directory, misses none. Nothing of a part that is missing already, or was seen in that night
/// or a later one.
std::vector<UnitVisit> missing_parts(const Database& database, const Sweep& sweep);

}  // namespace assay::history
