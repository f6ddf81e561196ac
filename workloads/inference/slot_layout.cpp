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

namespace {

bool on_one_node(const ExchangeJob& job, std::size_t rank) {
  return rank / train::sized(job.ranks_per_node) == train::sized(job.rank / job.ranks_per_node);
}

}  // namespace

void ExchangeTraffic::count_copy(const ExchangeJob& job, std::size_t rank) {
  if (rank == train::sized(job.rank))
    ++own;
  else
    ++(on_one_node(job, rank) ? node : network);
}

void ExchangeTraffic::count_bytes(const ExchangeJob& job, std::size_t rank, std::uint64_t bytes) {
  if (rank != train::sized(job.rank)) (on_one_node(job, rank) ? node_bytes : network_bytes) += bytes;
}

void ExchangeTraffic::add(const ExchangeTraffic& other) {
  own += other.own;
  node += other.node;
  network += other.network;
  slots += other.slots;
  node_bytes += other.node_bytes;
  network_bytes += other.network_bytes;
}

}  // namespace assay::inference
