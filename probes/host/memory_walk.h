// memory_walk: a cycle of pointers in memory of its own, which one thread of a crew walks.
#pragma once

#include <cstdint>
#include <span>

#include "probes/core/units.h"
#include "probes/host/buffer.h"
#include "probes/host/memory_placement.h"
#include "probes/host/pinned_threads.h"

namespace assay::host {

/// One cache line of 64 bytes that says where to go next.
struct alignas(64) Link {
  Link* next = nullptr;
};
static_assert(sizeof(Link) == 64);

/// Joins `links` into one random cycle through all of them (Sattolo 1986): every cycle is equally likely, and none is
/// shorter. The same seed gives the same cycle. Does nothing to an empty span.
void make_cycle(std::span<Link> links, std::uint64_t seed);

/// Follows `steps` pointers from `from`, each load needing the one before; returns the last pointer.
const Link* walk(const Link* from, std::uint64_t steps);

/// The memory that a cycle runs through when none is given: eight times all last-level caches, at most 4 GiB.
Bytes walk_size(Bytes given);

/// One walk. Thread 0 of the crew makes the cycle and so touches its memory first.
class MemoryWalk {
 public:
  MemoryWalk(PinnedThreads& crew, Bytes size, Pages pages, const Placement& placement);

  /// Follows `steps` pointers, on the calling thread, from where the last call ended.
  void follow(std::uint64_t steps);
  /// Time of `steps` loads of thread 0 while the others of the crew rest.
  Seconds alone(std::uint64_t steps);
  /// How many loads take about `goal` of CPU time of thread 0.
  std::uint64_t steps_for(Seconds goal);

  [[nodiscard]] const Buffer& memory() const { return memory_; }

 private:
  PinnedThreads& crew_;
  Buffer memory_;
  const Link* at_ = nullptr;
};

}  // namespace assay::host
