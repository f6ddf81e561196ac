// chase: Sattolo's shuffle in place, and the walk.
#include "probes/host/chase.h"

#include <utility>

#include "probes/host/gaussian.h"

namespace assay::host {

void make_cycle(std::span<Link> links, std::uint64_t seed) {
  for (Link& link : links) link.next = &link;
  Random random(seed);
  for (std::size_t i = links.size(); i-- > 1;) std::swap(links[i].next, links[random.below(i)].next);
}

std::size_t cycle_length(std::span<const Link> links) {
  if (links.empty()) return 0;
  const Link* at = links.data();
  for (std::size_t steps = 1; steps <= links.size(); ++steps) {
    at = at->next;
    if (at == links.data()) return steps;
  }
  return 0;
}

const Link* walk(const Link* from, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) from = from->next;
  return from;
}

}  // namespace assay::host
