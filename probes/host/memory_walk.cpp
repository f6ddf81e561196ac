// memory_walk: the cycle, and its walk on thread 0.
#include "probes/host/memory_walk.h"

#include <algorithm>
#include <utility>

#include "probes/core/host_facts.h"
#include "probes/host/gaussian.h"
#include "probes/host/timing.h"

namespace assay::host {
namespace {

constexpr std::uint64_t kCycleCaches = 8;  // at four times, a cache with random replacement still answers some loads
constexpr Bytes kUnknownCaches = {std::uint64_t{128} << 20};
constexpr Bytes kLargestCycle = {std::uint64_t{4} << 30};  // building a larger cycle takes longer than measuring it
constexpr std::uint64_t kCycleSeed = 1;

}  // namespace

void make_cycle(std::span<Link> links, std::uint64_t seed) {
  for (Link& link : links) link.next = &link;
  Random random(seed);
  for (std::size_t i = links.size(); i-- > 1;) std::swap(links[i].next, links[random.below(i)].next);
}

const Link* walk(const Link* from, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) from = from->next;
  return from;
}

Bytes walk_size(Bytes given) {
  if (given.count > 0) return given;
  return std::min(kLargestCycle, Bytes{kCycleCaches * last_level_cache().value_or(kUnknownCaches).count});
}

MemoryWalk::MemoryWalk(PinnedThreads& crew, Bytes size, Pages pages, const Placement& placement)
    : crew_(crew), memory_(size, pages) {
  place(memory_, placement);
  crew_.run([&](std::size_t thread) {
    if (thread == 0) make_cycle(memory_.as<Link>(), kCycleSeed);
  });
  at_ = memory_.as<Link>().data();
}

void MemoryWalk::follow(std::uint64_t steps) {
  at_ = walk(at_, steps);
  keep(at_);
}

Seconds MemoryWalk::alone(std::uint64_t steps) {
  return crew_.run([&](std::size_t thread) {
    if (thread == 0) follow(steps);
  });
}

std::uint64_t MemoryWalk::steps_for(Seconds goal) {
  return rounds_for(goal, [&](std::uint64_t tried) {
    alone(tried);
    return crew_.cpu_time();
  });
}

}  // namespace assay::host
