// check_kernels: the kernels of check.h, one text for GPUs of NVIDIA, of AMD and for the host, as
// probes/cuda/memory_kernels.cuh. All arithmetic is in pattern.h, where the host's tests run it. Each thread walks on
// by the grid, of which `step` is the number of threads.
#pragma once

#include <cstdint>

#include "probes/collective/pattern.h"
#include "probes/cuda/fold.h"
#include "probes/cuda/kernel_words.h"

namespace assay::nccl::kernels {

using cuda::words::Word;

__device__ inline std::uint64_t first_index() {
  return std::uint64_t{cuda::words::block_index()} * cuda::kSumThreads + cuda::words::thread_index();
}

/// Unsigned numbers as wide as the element.
template <class Bits>
__device__ void send_numbers(Bits* buffer, std::uint64_t count, std::uint64_t step, collective::Element element,
                             const collective::Pattern& pattern) {
  for (std::uint64_t i = first_index(); i < count; i += step)
    buffer[i] = static_cast<Bits>(collective::bits_of(element, pattern, collective::sent(pattern, i)));
}
template <class Bits>
__device__ void count_wrong(const Bits* buffer, std::uint64_t count, std::uint64_t step, collective::Element element,
                            const collective::Pattern& pattern, Word* mismatches) {
  Word wrong = 0;
  for (std::uint64_t i = first_index(); i < count; i += step) {
    if (buffer[i] != collective::bits_of(element, pattern, collective::received(pattern, i))) ++wrong;
  }
  if (wrong != 0) (void)cuda::words::add_atomically(mismatches, wrong);
}

extern "C" __global__ void __launch_bounds__(cuda::kSumThreads)
    assay_send(void* buffer, std::uint64_t count, std::uint64_t step, collective::Element element,
               collective::Pattern pattern) {
  if (size_of(element) == sizeof(std::uint16_t))
    send_numbers(static_cast<std::uint16_t*>(buffer), count, step, element, pattern);
  else if (size_of(element) == sizeof(std::uint32_t))
    send_numbers(static_cast<std::uint32_t*>(buffer), count, step, element, pattern);
  else
    send_numbers(static_cast<std::uint64_t*>(buffer), count, step, element, pattern);
}

extern "C" __global__ void __launch_bounds__(cuda::kSumThreads)
    assay_compare(const void* buffer, std::uint64_t count, std::uint64_t step, collective::Element element,
                  collective::Pattern pattern, Word* mismatches) {
  if (size_of(element) == sizeof(std::uint16_t))
    count_wrong(static_cast<const std::uint16_t*>(buffer), count, step, element, pattern, mismatches);
  else if (size_of(element) == sizeof(std::uint32_t))
    count_wrong(static_cast<const std::uint32_t*>(buffer), count, step, element, pattern, mismatches);
  else
    count_wrong(static_cast<const std::uint64_t*>(buffer), count, step, element, pattern, mismatches);
}

}  // namespace assay::nccl::kernels
