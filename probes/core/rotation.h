// rotation: several sets of operands used in turn, so that no pass finds its operands in a cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/core/units.h"

namespace assay {

/// How many sets of `set` bytes pass twice the last-level cache together; at least 2, so that consecutive passes never
/// share an operand.
constexpr std::size_t operand_sets(Bytes set, Bytes cache) {
  const std::uint64_t sets = (2 * cache.count + set.count - 1) / set.count;
  return sets < 2 ? 2 : static_cast<std::size_t>(sets);
}
static_assert(operand_sets({100}, {32}) == 2);
static_assert(operand_sets({10}, {32}) == 7);

}  // namespace assay
