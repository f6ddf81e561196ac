// check_launches: the functions of check.h, for a way to launch, as probes/cuda/memory_launches.cuh.
#pragma once

#include <algorithm>

#include "probes/nccl/check.h"
#include "probes/nccl/check_kernels.cuh"

namespace assay::nccl {

/// Threads of the grid: more blocks than these only queue.
inline std::uint64_t threads_for(std::uint64_t count) {
  constexpr std::uint64_t kMostBlocks = 4096;
  const std::uint64_t blocks = (count + cuda::kSumThreads - 1) / cuda::kSumThreads;
  return std::min(std::max(blocks, std::uint64_t{1}), kMostBlocks) * cuda::kSumThreads;
}

void fill(std::byte* buffer, std::uint64_t count, collective::Element element, const collective::Pattern& pattern,
          const cuda::Stream& stream) {
  const std::uint64_t threads = threads_for(count);
  cuda::launch_over(threads, stream, kernels::assay_send, buffer, count, threads, element, pattern);
}

void count_mismatches(const std::byte* buffer, std::uint64_t count, collective::Element element,
                      const collective::Pattern& pattern, std::uint64_t* mismatches, const cuda::Stream& stream) {
  const std::uint64_t threads = threads_for(count);
  cuda::launch_over(threads, stream, kernels::assay_compare, buffer, count, threads, element, pattern,
                    reinterpret_cast<cuda::words::Word*>(mismatches));
}

}  // namespace assay::nccl
