// gemm_operands: several sets of matrices, so that no product finds its operands in a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probes/core/rotation.h"
#include "probes/host/buffer.h"
#include "probes/host/gemm_check.h"
#include "probes/host/pinned_threads.h"
#include "probes/host/slice.h"

namespace assay::host {

/// The part of C that one thread computes.
struct Tile {
  Slice rows, columns;
};

/// Tile `index` of a grid of `tiles` over an n x n matrix: as near to square tiles as the divisors of `tiles` allow,
/// cut at multiples of 16 elements, which every kernel of the library divides.
constexpr Tile tile(std::size_t n, std::size_t tiles, std::size_t index) {
  constexpr std::size_t kGranule = 16;
  std::size_t down = 1;
  for (std::size_t d = 1; d * d <= tiles; ++d) {
    if (tiles % d == 0) down = d;
  }
  return {.rows = slice(n, down, index % down, kGranule), .columns = slice(n, tiles / down, index / down, kGranule)};
}
static_assert(tile(64, 2, 1).rows == Slice{0, 64} && tile(64, 2, 1).columns == Slice{32, 64});
static_assert(tile(64, 4, 1).rows == Slice{32, 64} && tile(64, 4, 1).columns == Slice{0, 32});

/// Sets of A, B (standard normal, different in every set) and C (not a number until it is computed), n x n,
/// column-major.
template <class Real>
class GemmOperands {
 public:
  /// Maps and fills `sets` sets; each thread of `crew` touches the columns first that it will use. Throws
  /// std::runtime_error when they would take more than three quarters of memory.
  GemmOperands(PinnedThreads& crew, std::size_t n, std::size_t sets);

  /// Matrices of set `index` for a computation.
  struct Set {
    const Real* a;
    const Real* b;
    Real* c;
  };
  [[nodiscard]] Set set(std::size_t index);
  /// Set `index` as a finished product.
  [[nodiscard]] Product<Real> product(std::size_t index) const;
  /// 64 bits that differ, with all but certainty, when any bit of C of set `index` differs.
  [[nodiscard]] std::uint64_t fingerprint(PinnedThreads& crew, std::size_t index);
  /// Number of sets.
  [[nodiscard]] std::size_t size() const { return matrices_.size() / 3; }
  /// Share of the memory that huge pages back.
  [[nodiscard]] double huge_share() const;

 private:
  std::size_t n_;
  std::vector<Buffer> matrices_;  ///< A, B, C of set 0, then of set 1, …
};

}  // namespace assay::host
