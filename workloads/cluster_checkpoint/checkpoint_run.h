// checkpoint_run: the repetitions of checkpoint_cluster on one rank, and their record.
#pragma once

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/cluster_checkpoint/checkpoint_tiers.h"

namespace assay::cluster_checkpoint {

/// The settings that the parameters name; directories and nonce are the run's. Throws BadParameter.
TierSettings tier_settings(const Parameters& given, int world);

/// Saves and restores as often as the parameters say, and records all of it. All ranks call it.
void run_checkpoints(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record);

}  // namespace assay::cluster_checkpoint
