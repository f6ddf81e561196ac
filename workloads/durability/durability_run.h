// durability_run: the ranks of storage_durability, each a writer and the keeper of another's ledger.
#pragma once

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/durability/durable_stream.h"

namespace assay::durability {

/// The settings that the parameters name; folder and nonce are the run's. Throws BadParameter.
DurabilitySettings durability_settings(const Parameters& given);

/// Writes, lets the fault come, checks and records. All ranks call it.
void run_durability(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record);

}  // namespace assay::durability
