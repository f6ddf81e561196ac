// moe_gpus: moe_dispatch with a process for each GPU of the node and slots in its memory, sent by NCCL.
#pragma once

#include <optional>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"

namespace assay::inference {

/// The part of this node with the GPUs that `device` names. `group` is null on one node. Throws Skip where the driver,
/// NCCL or such a GPU is missing, or this program was built without CUDA or NCCL's header.
void take_part_with_gpus(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group);

/// Runs as the rank of one GPU when the arguments are those of moe_arguments(), until standard input ends; the exit
/// code then. Nothing when they are not.
std::optional<int> gpu_rank_main(int argc, char** argv);

}  // namespace assay::inference
