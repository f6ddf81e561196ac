// flows: the flows of each pattern.
#include "probes/traffic/flows.h"

#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/parameters.h"

namespace assay::traffic {

std::vector<Flow> flows_of(std::string_view pattern, int world, int shift) {
  if (world < 2) throw std::runtime_error(fmt::format("{} rank has no peer to send to", world));
  std::vector<Flow> flows;
  if (pattern == "permutation") {
    if (shift < 1 || shift % world == 0)
      throw BadParameter(
          fmt::format("shift: {} of {} ranks leads each to itself; give 1 to {}", shift, world, world - 1));
    for (int rank = 0; rank < world; ++rank) flows.push_back({.source = rank, .target = (rank + shift) % world});
  } else if (pattern == "bisection") {
    const int half = world / 2;
    for (int rank = 0; rank < 2 * half; ++rank) flows.push_back({.source = rank, .target = (rank + half) % (2 * half)});
  } else if (pattern == "incast") {
    for (int rank = 1; rank < world; ++rank) flows.push_back({.source = rank, .target = 0});
  } else {
    throw std::logic_error(fmt::format("there is no pattern '{}'", pattern));
  }
  return flows;
}

}  // namespace assay::traffic
