// gemm_check: checks C = A B from the inputs, by means independent of the library that computed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::host {

/// Three n x n matrices, column-major: element (row, column) at [row + column * n].
template <class Real>
struct Product {
  std::size_t n = 0;
  std::span<const Real> a, b, c;
};

/// Largest error that rounding explains in a sum of `terms` products, as a multiple of the sum of their absolute
/// values: min(terms, 8 sqrt(terms)) u, with u the unit roundoff of Real. The first is the bound that always holds
/// (Higham 2002, eq. 3.5), the second holds with probability over 1 - 2 terms exp(-32) (Higham & Mary 2019,
/// theorem 2.4, lambda = 8).
template <class Real>
double rounding_bound(std::size_t terms);

/// How many of 4096 elements, on 64 random rows and 64 random columns that always include the first and the last,
/// differ from a long double reference by more than the rounding bound or are not finite. All rows and columns when
/// n is 64 or less.
template <class Real>
std::uint64_t wrong_samples(const Product<Real>& product, std::uint64_t seed);

/// How many rows of C fail Freivalds' check C x = A (B x) for one random vector x of signs (Freivalds 1979): a wrong
/// row passes with probability at most 1/2 however it is wrong, and a single wrong element never passes.
template <class Real>
std::uint64_t wrong_rows(const Product<Real>& product, std::uint64_t seed);

}  // namespace assay::host
