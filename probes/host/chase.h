// chase: a cycle of pointers through memory in random order, one in every cache line.
#pragma once

#include <cstdint>
#include <span>

namespace assay::host {

/// One cache line of 64 bytes that says where to go next.
struct alignas(64) Link {
  Link* next = nullptr;
};
static_assert(sizeof(Link) == 64);

/// Joins `links` into one random cycle through all of them (Sattolo 1986): every cycle is equally likely, and none is
/// shorter. The same seed gives the same cycle. Does nothing to an empty span.
void make_cycle(std::span<Link> links, std::uint64_t seed);

/// Number of steps after which the walk from the first link is back at it; 0 when it is not back after links.size()
/// steps. A full cycle gives links.size().
std::size_t cycle_length(std::span<const Link> links);

/// Follows `steps` pointers from `from`, each load needing the one before; returns the last pointer.
const Link* walk(const Link* from, std::uint64_t steps);

}  // namespace assay::host
