// host_load: CPUs that multiply matrices.
#pragma once

#include <cstddef>
#include <vector>

#include "probes/power/load_engine.h"

namespace assay::power {

/// `threads` threads that share a level, each with operands of its own: FP64 matrices of normal numbers of an order
/// that is work for the cores and not for the memory.
std::vector<LoadPart> host_load(std::size_t threads);

}  // namespace assay::power
