// conductor: what the leader of rank 0 does. It asks all ranks, size by size, and records.
#pragma once

#include <vector>

#include "probes/core/parameters.h"
#include "probes/core/units.h"

namespace assay {

class Fleet;
class Recorder;

/// Measures every one of `sizes` that fits on all ranks of `fleet`: a check, the timing by sampling()'s rules, a second
/// check; records the metrics of nccl_collective with "at" the size, and what the ranks report. `given` has operation,
/// type and the sampling parameters. The subject is the node, or of several nodes the group with their names joined by
/// commas. Throws std::runtime_error when a rank fails, ranks differ in their version of NCCL, or no size fits.
void conduct(Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, Recorder& record);

}  // namespace assay
