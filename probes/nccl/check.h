// check: fills send buffers with a pattern and counts mismatches in receive buffers, on the device.
#pragma once

#include <cstdint>

#include "probes/collective/pattern.h"
#include "probes/cuda/device.h"

namespace assay::nccl {

/// Enqueues writing sent() into the `count` elements at `buffer`.
void fill(std::byte* buffer, std::uint64_t count, collective::Element element, const collective::Pattern& pattern,
          const cuda::Stream& stream);

/// Enqueues counting those of the `count` elements at `buffer` that are not received(); adds to `*mismatches`, which is
/// in memory of the device: adding to the host's needs atomics over PCIe, which not every machine has.
void count_mismatches(const std::byte* buffer, std::uint64_t count, collective::Element element,
                      const collective::Pattern& pattern, std::uint64_t* mismatches, const cuda::Stream& stream);

}  // namespace assay::nccl
