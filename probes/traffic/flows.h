// flows: the patterns in which many nodes send at the same time. Pure.
#pragma once

#include <string_view>
#include <vector>

namespace assay::traffic {

/// Payload from one rank to another.
struct Flow {
  int source = 0, target = 0;

  friend bool operator==(const Flow&, const Flow&) = default;
};

/// The flows of `pattern` among `world` ranks, by source, then target:
/// permutation: every rank sends to the one `shift` further on, the last to the first; each sends once and receives
/// once; bisection: rank i of the first half and rank i of the second send to each other; of an odd number the last
/// takes no part; incast: every rank sends to rank 0. Throws BadParameter for a shift that is 0 or a multiple of
/// `world`, std::logic_error for another word, std::runtime_error for fewer than 2 ranks.
std::vector<Flow> flows_of(std::string_view pattern, int world, int shift);

}  // namespace assay::traffic
