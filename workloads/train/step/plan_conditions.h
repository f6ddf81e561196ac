// plan_conditions: conditions of the plan that every training probe records.
#pragma once

#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// Conditions that record_plan() writes.
inline constexpr ConditionSpec kPlanConditions[] = {
    {.name = "path", .meaning = "path of the payload: fabric, between machines, or loopback"},
    {.name = "ranks", .meaning = "processes that took part"},
    {.name = "nodes", .meaning = "nodes that took part"},
    {.name = "ranks_per_node", .meaning = "processes that took part on each node"},
    {.name = "node_names", .meaning = "names of the nodes by rank, separated by commas"},
    {.name = "plan", .meaning = "how the step was divided: tp, cp, ep, pp, dp, virtual and zero"},
    {.name = "flop_count", .meaning = "rule by which FLOPs are counted, see docs/FORMATS.md"},
    {.name = "flop_per_token", .meaning = "FLOPs of training on one token, by that count, of the layers that were run"},
    {.name = "tokens_per_step", .meaning = "tokens of all replicas"},
    {.name = "layers_run", .meaning = "layers of the model that were run"},
    {.name = "parameters_run", .meaning = "parameters of the model with these layers"},
    {.name = "attention", .meaning = "how attention is computed"},
    if_asked("routing",
             "how tokens were given to routed experts, if there are such: by_place, from a token's place in the step, "
             "independent of the router's output"),
    {.name = "data_mode", .meaning = "kind of weights and tokens: gaussian, replicated or ring"},
    {.name = "launch", .meaning = "how operations are started: eager, one after the other from a loop"},
};

/// Records them of `job`, run on `nodes` by `given`, which has kPlaceParameters and data.
void record_plan(const Parameters& given, const RankJob& job, const std::vector<std::string>& nodes, Recorder& record);

}  // namespace assay::train
