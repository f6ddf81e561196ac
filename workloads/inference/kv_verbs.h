// kv_verbs: a cache of keys and values between two RDMA ports, from and to memory of hosts or GPUs. In a build without
// verbs it only says so.
#pragma once

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "workloads/inference/kv_run.h"

namespace assay::inference {

/// Measures as one rank of the pair, or as both of a loopback in this process, and records. Throws as the verbs room
/// does: Skip without adapter, driver or GPU; and where a GPU's memory is not reached by the adapter itself, unless
/// `gpu_path` asks for copies through the host's.
void transfer_over_verbs(const Parameters& given, const KvPlan& plan, const Placement& placement, Seconds exchange,
                         Recorder& record);

}  // namespace assay::inference
