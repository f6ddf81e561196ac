// slot_layout: the memory of a job, without a mesh.
#include "workloads/inference/slot_layout.h"

namespace assay::inference {

std::size_t ExchangeJob::out_slot() const { return SlotSizes(*this).out_slot(); }
std::size_t ExchangeJob::back_slot() const { return SlotSizes(*this).back_slot(); }
std::uint64_t ExchangeJob::memory() const {
  const MostSlots most(*this);
  return (most.sent + most.received) * (out_slot() + back_slot()) + most.tokens * (out_bytes() + back_bytes()) +
         static_cast<std::uint64_t>(routing.tokens * routing.experts_per_rank()) * sizeof(std::uint16_t);
}

}  // namespace assay::inference
