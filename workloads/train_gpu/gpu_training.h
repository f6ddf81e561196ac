// gpu_training: the requests of rank 0's leader to all GPUs, and its records.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/fleet.h"
#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "workloads/train/graph/step_job.h"

namespace assay::train_gpu {

/// Admits the job to the memory of the GPUs, connects them, agrees on algorithms, checks exact steps before and after,
/// and times rounds of full, compute-only and communication-only steps. `names` are the nodes', unlike each other.
/// Throws BadParameter when the plan does not fit, and the errors of Fleet::ask.
void conduct_gpu_training(collective::Fleet& fleet, const Parameters& given, const train::RankJob& job,
                          const std::vector<std::string>& names, Recorder& record);

}  // namespace assay::train_gpu
