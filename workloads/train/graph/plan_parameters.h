// plan_parameters: the parameters by which every probe of training divides a step among ranks.
#pragma once

#include <cstdint>

#include "probes/core/group_size.h"
#include "probes/core/parameters.h"
#include "probes/host/tcp_path.h"
#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// The computation and its division.
inline constexpr Parameter kPlanParameters[] = {
    {.name = "model",
     .fallback = "tiny-dense",
     .meaning = "name of a built-in model, or path of an assay.model/1 on every node"},
    {.name = "layers_run", .unit = "1", .fallback = "0", .meaning = "layers of the model that are run; 0: all"},
    {.name = "seq", .unit = "1", .fallback = "128", .meaning = "tokens of a sequence"},
    {.name = "micro_batch", .unit = "1", .fallback = "2", .meaning = "sequences of a micro-batch"},
    {.name = "micro_batches", .unit = "1", .fallback = "1", .meaning = "micro-batches of a replica in one step"},
    {.name = "tp", .unit = "1", .fallback = "1", .meaning = "ranks that share each matrix"},
    {.name = "cp",
     .unit = "1",
     .fallback = "1",
     .meaning = "ranks that share each sequence, a piece from its front and one from its back"},
    {.name = "ep",
     .unit = "1",
     .fallback = "1",
     .meaning = "ranks that share the routed experts, of those of cp and dp"},
    {.name = "pp", .unit = "1", .fallback = "1", .meaning = "ranks that share the layers, by 1F1B"},
    {.name = "dp", .unit = "1", .fallback = "0", .meaning = "replicas; 0: as many as there are ranks for"},
    {.name = "virtual",
     .unit = "1",
     .fallback = "1",
     .meaning = "pieces of the model on each pipeline rank, interleaved"},
    {.name = "zero",
     .unit = "1",
     .fallback = "0",
     .meaning = "0: every replica updates all weights; 1: each a part, which is then gathered"},
};
/// Numbers of nodes that a plan can be divided among; also needs `ranks_per_node`.
inline constexpr GroupSizeRule kPlanGroupSize[] = {
    {.processes = SizeDemand::multiple_of,
     .of = "tp cp pp",
     .each = "ranks_per_node",
     .reason = "every replica takes tp x cp x pp of them"},
    {.processes = SizeDemand::exactly,
     .of = "tp cp pp dp",
     .each = "ranks_per_node",
     .reason = "the plan has tp x cp x pp x dp of them"},
};

/// Places of the ranks and the carrier of their messages.
inline constexpr Parameter kPlaceParameters[] = {
    host::kPathParameter,
    {.name = "interface",
     .fallback = host::kRendezvousPort,
     .meaning = "network port to use on every node, such as eth1; rendezvous: the one on which the ranks meet"},
};

/// Where gradients are reduced.
inline constexpr Parameter kOverlapParameter = {
    .name = "overlap",
    .fallback = "beside",
    .meaning = "beside: gradients are reduced by a thread of their own during the backward pass; none: after it",
    .choices = "beside none"};
/// Reference of exact steps.
inline constexpr Parameter kReferenceParameter = {
    .name = "reference",
    .fallback = "one_rank",
    .meaning =
        "one_rank: exact steps are compared with those of one rank that does all of it; none: only with themselves and "
        "with the replicas",
    .choices = "one_rank none"};

/// The whole number `name`, from `least` to `most`. Throws BadParameter for another.
std::int64_t count_in_range(const Parameters& given, const char* name, std::int64_t least, std::int64_t most);

/// Ranks of each node. Throws BadParameter for none and for more than 256.
std::int64_t ranks_per_node(const Parameters& given);

/// The plan of `given` on `ranks` ranks, checked against its model, and the model. Throws BadParameter if a value is
/// out of range, does not divide, or is not run by this engine.
RankJob job_on(const Parameters& given, std::int64_t ranks);

}  // namespace assay::train
