// train_run: the leader of rank 0 asks all ranks and records.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/fleet.h"
#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "workloads/train/engine/host_engine.h"

namespace assay::train {

/// The plan of `given` on `ranks` ranks, checked against its model. Throws BadParameter if a value is out of range,
/// does not divide, or is not run by this engine.
RankJob job_of(const Parameters& given, std::int64_t ranks);

/// Checks exactness, times the steps of `job` and records; figures of several nodes belong to their group, those of a
/// rank to the node that `names` has for it. `entered` is called with the answers of all ranks to "enter", if there are
/// several. Returns the answers to "facts", by rank. Throws std::runtime_error when a rank fails, and BadParameter when
/// the plan does not fit the memory of the ranks.
std::vector<nlohmann::json> conduct_training(collective::Fleet& fleet, const Parameters& given, const RankJob& job,
                                             const std::vector<std::string>& names,
                                             const std::function<void(const std::vector<nlohmann::json>&)>& entered,
                                             Recorder& record);

}  // namespace assay::train
