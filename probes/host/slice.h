// slice: how a length is divided among the threads.
#pragma once

#include <algorithm>
#include <cstddef>

namespace assay::host {

/// A half-open range of indices.
struct Slice {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend constexpr bool operator==(const Slice&, const Slice&) = default;
};

/// Part `index` of `parts` of [0, total): contiguous, in order, cut at multiples of `granule`, sizes within one granule
/// of each other but for the last cut. `parts` and `granule` must be positive. A part may be empty.
constexpr Slice slice(std::size_t total, std::size_t parts, std::size_t index, std::size_t granule = 1) {
  const std::size_t granules = (total + granule - 1) / granule;
  return {.begin = std::min(total, granules * index / parts * granule),
          .end = std::min(total, granules * (index + 1) / parts * granule)};
}
static_assert(slice(100, 3, 0, 8) == Slice{0, 32});
static_assert(slice(100, 3, 1, 8) == Slice{32, 64});
static_assert(slice(100, 3, 2, 8) == Slice{64, 100});

}  // namespace assay::host
