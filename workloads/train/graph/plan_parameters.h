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
    parameter("model", "", "tiny-dense", "name of a built-in model, or path of an assay.model/1 on every node"),
    parameter("layers_run", "1", "0", "layers of the model that are run; 0: all"),
    parameter("seq", "1", "128", "tokens of a sequence"),
    parameter("micro_batch", "1", "2", "sequences of a micro-batch"),
    parameter("micro_batches", "1", "1", "micro-batches of a replica in one step"),
    parameter("tp", "1", "1", "ranks that share each matrix"),
    parameter("cp", "1", "1", "ranks that share each sequence, a piece from its front and one from its back"),
    parameter("ep", "1", "1", "ranks that share the routed experts, of those of cp and dp"),
    parameter("pp", "1", "1", "ranks that share the layers, by 1F1B"),
    parameter("dp", "1", "0", "replicas; 0: as many as there are ranks for"),
    parameter("virtual", "1", "1", "pieces of the model on each pipeline rank, interleaved"),
    parameter("zero", "1", "0", "0: every replica updates all weights; 1: each a part, which is then gathered"),
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
    parameter("interface", "", host::kRendezvousPort,
              "network port to use on every node, such as eth1; rendezvous: the one on which the ranks meet"),
};

/// Where gradients are reduced.
inline constexpr Parameter kOverlapParameter =
    choice("overlap", "beside", "beside none",
           "beside: gradients are reduced by a thread of their own during the backward pass; none: after it");
/// Reference of exact steps.
inline constexpr Parameter kReferenceParameter = choice(
    "reference", "one_rank", "one_rank none",
    "one_rank: exact steps are compared with those of one rank that does all of it; none: only with themselves and "
    "with the replicas");

/// Ranks of each node. Throws BadParameter for none and for more than 256.
std::int64_t ranks_per_node(const Parameters& given);

/// The plan of `given` on `ranks` ranks, checked against its model, and the model. Throws BadParameter if a value is
/// out of range, does not divide, or is not run by this engine.
RankJob job_on(const Parameters& given, std::int64_t ranks);

}  // namespace assay::train
