// sm_cycles: no cycles of compute units are counted yet; the watch reads their clock.
#include "probes/cuda/sm_cycles.h"

namespace assay::cuda {

SmCycles::SmCycles(const Device& device) : processors_(static_cast<std::size_t>(device.sm_count)) {}
void SmCycles::begin(const Stream&) {}
void SmCycles::end(const Stream&) {}
std::optional<SmCycles::Counted> SmCycles::counted() const { return std::nullopt; }

}  // namespace assay::cuda
