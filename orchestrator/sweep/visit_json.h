// visit_json: one node's visit as JSON, the same in the ledger, in sweep.json and in a worker's visit.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "orchestrator/sweep/ledger.h"
#include "probes/core/strict_object.h"

namespace assay::sweep {

/// {"node", "state", "reason"}; the reason printable.
nlohmann::json to_json(const NodeVisit& visit);

/// The visit that `object` is; refuses it as a StrictObject does.
NodeVisit visit_from(StrictObject object);

}  // namespace assay::sweep
