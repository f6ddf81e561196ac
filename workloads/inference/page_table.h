// page_table: pages of a cache in an order that a seed gives, as a serving engine has them after a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "probes/host/gaussian.h"

namespace assay::inference {

/// Where each of `pages` pages is: every number below `pages` once.
template <class Number>
std::vector<Number> page_table(std::size_t pages, std::uint64_t seed) {
  std::vector<Number> table(pages);
  std::iota(table.begin(), table.end(), Number{0});
  host::Random random(seed);
  for (std::size_t left = pages; left > 1; --left) std::swap(table[left - 1], table[random.below(left)]);
  return table;
}

}  // namespace assay::inference
