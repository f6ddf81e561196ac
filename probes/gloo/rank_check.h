// rank_check: fills send buffers with a pattern and counts mismatches in receive buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/collective/pattern.h"

namespace assay::gloo {

/// Writes sent() into the `count` elements at `buffer`. Elements are fp32 or fp64.
void fill(std::byte* buffer, std::uint64_t count, collective::Element element, const collective::Pattern& pattern);

/// How many of the `count` elements at `buffer` are not received(), bit by bit.
std::uint64_t count_mismatches(const std::byte* buffer, std::uint64_t count, collective::Element element,
                               const collective::Pattern& pattern);

}  // namespace assay::gloo
