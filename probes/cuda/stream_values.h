// stream_values: what the kernels of cuda_hbm_bandwidth read and must leave behind, the same on host and GPU.
#pragma once

#include <cstdint>

#include "probes/cuda/mixed.h"

namespace assay::cuda {

/// The kernels, in the order in which the probe runs them: read sums a, write fills a; copy c = a, scale b = s c,
/// add c = a + b, triad a = b + s c as STREAM has them; dot sums a b as BabelStream does.
enum class HbmKernel { read, write, copy, scale, add, triad, dot };
inline constexpr HbmKernel kHbmKernels[] = {HbmKernel::read, HbmKernel::write, HbmKernel::copy, HbmKernel::scale,
                                            HbmKernel::add,  HbmKernel::triad, HbmKernel::dot};

/// The three arrays.
enum class HbmArray { a, b, c };
inline constexpr HbmArray kHbmArrays[] = {HbmArray::a, HbmArray::b, HbmArray::c};

/// Bytes that one pass over arrays of `array_bytes` each moves: what the kernel asks to read and write, as STREAM
/// counts (McCalpin, STREAM 5.10). A GPU stores whole sectors without reading them first, so that this is also what the
/// memory moves.
constexpr std::uint64_t hbm_bytes(HbmKernel kernel, std::uint64_t array_bytes) {
  switch (kernel) {
    case HbmKernel::read:
    case HbmKernel::write:
      return array_bytes;
    case HbmKernel::copy:
    case HbmKernel::scale:
    case HbmKernel::dot:
      return 2 * array_bytes;
    case HbmKernel::add:
    case HbmKernel::triad:
      return 3 * array_bytes;
  }
  return 0;
}
static_assert(hbm_bytes(HbmKernel::read, 8) == 8 && hbm_bytes(HbmKernel::dot, 8) == 16);
static_assert(hbm_bytes(HbmKernel::triad, 8) == 24);

/// STREAM's scalar.
inline constexpr double kHbmScalar = 3;

/// Values repeat after the largest prime below 2^20: a prime, so that a value fetched from an address that is wrong by
/// a power of two differs, and short, so that the host can add up a whole period.
inline constexpr std::uint64_t kHbmPeriod = 1'048'573;

/// Bits of the whole numbers that fill the arrays. 50 leave b + 3 c below 2^53, so that every result is exact in a
/// double whatever the order or fusion of operations; 10 do the same for sums of up to 2^33 products, far more than one
/// thread of dot adds up in floating point.
inline constexpr unsigned kHbmBits = 50, kHbmDotBits = 10;
static_assert(4 * ((std::uint64_t{1} << kHbmBits) - 1) < (std::uint64_t{1} << 53));

/// The whole number below 2^bits that `array` holds at `index` before any kernel, `bits` is 1 to 63.
constexpr std::uint64_t hbm_start(HbmArray array, std::uint64_t index, unsigned bits) {
  return mixed(0, index % kHbmPeriod + static_cast<std::uint64_t>(array) * kHbmPeriod) >> (64 - bits);
}

/// Bits of the numbers that `kernel` works on.
constexpr unsigned hbm_bits(HbmKernel kernel) { return kernel == HbmKernel::dot ? kHbmDotBits : kHbmBits; }

/// hbm_start as the double that the arrays hold.
constexpr double hbm_start_value(HbmKernel kernel, HbmArray array, std::uint64_t index) {
  return static_cast<double>(hbm_start(array, index, hbm_bits(kernel)));
}

/// What `array` must hold at `index` after any positive number of passes of copy, scale, add, triad or dot over arrays
/// that were filled with hbm_start_value: no result is an input of the same kernel, so that passes do not add up.
constexpr double hbm_expected(HbmKernel kernel, HbmArray array, std::uint64_t index) {
  const double a = hbm_start_value(kernel, HbmArray::a, index);
  const double b = hbm_start_value(kernel, HbmArray::b, index);
  const double c = hbm_start_value(kernel, HbmArray::c, index);
  if (array == HbmArray::a) return kernel == HbmKernel::triad ? b + kHbmScalar * c : a;
  if (array == HbmArray::b) return kernel == HbmKernel::scale ? kHbmScalar * c : b;
  if (kernel == HbmKernel::copy) return a;
  return kernel == HbmKernel::add ? a + b : c;
}

/// The exact dot product of the first `elements` elements of a and b, for fewer than 2^44 of them.
constexpr std::uint64_t hbm_dot(std::uint64_t elements) {
  const std::uint64_t periods = elements / kHbmPeriod, rest = elements % kHbmPeriod;
  std::uint64_t period = 0, sum = 0;
  for (std::uint64_t i = 0; i < kHbmPeriod && (periods > 0 || i < rest); ++i) {
    if (i == rest) sum = period;
    period += hbm_start(HbmArray::a, i, kHbmDotBits) * hbm_start(HbmArray::b, i, kHbmDotBits);
  }
  return periods > 0 ? periods * period + sum : period;
}
static_assert(hbm_dot(0) == 0);
static_assert(hbm_dot(1) == hbm_start(HbmArray::a, 0, 10) * hbm_start(HbmArray::b, 0, 10));

}  // namespace assay::cuda
