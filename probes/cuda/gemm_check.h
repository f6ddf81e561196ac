// gemm_check: checks the GPU's product on the host, in a wider type, from the operands as stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "probes/cuda/gemm_type.h"

namespace assay::cuda {

/// `count` (at most `size`) distinct indices below `size`, ascending: one drawn from each of `count` equal strips, the
/// first and the last index among them. With 64 of 8192 every tile of 128 lines that a kernel computes is sampled.
std::vector<std::size_t> sampled_indices(std::size_t size, std::size_t count, std::uint64_t seed);

/// The numbers in `count` elements of `format` stored at `bytes`. The lower bits of tf32 are zero already.
std::vector<double> decode_elements(Format format, std::span<const std::byte> bytes, std::size_t count);

/// Multiplies the blocks along each of the lines by their scales. `lines` are the indices of the lines in `values`,
/// which has `k` numbers for each; `scales` is the whole tensor of scales as cuBLASLt reads it.
void apply_block_scales(std::span<double> values, std::span<const std::size_t> lines, std::size_t k, Scaling scaling,
                        std::span<const std::byte> scales);

/// Sampled lines of op(A), sampled columns of op(B), and the results at their crossings.
struct SampledProduct {
  std::size_t k = 0;
  std::vector<double> a;  ///< k numbers for each sampled line, scales applied
  std::vector<double> b;  ///< k numbers for each sampled column, scales applied
  std::vector<double> d;  ///< result of line i and column j at [i * columns + j]
};

/// Largest error of a right result, for the products p of one element that add up to `sum`:
///   accumulated + output * (|sum| + accumulated) + split, where
///   accumulated = steps * accumulator * (4 sqrt(sum of p^2) + |sum|), steps = k / per_step + 8, and
///   split = parts * output * (4 sqrt(sum of p^2) + |sum|) for more than one of `parts`, else 0.
/// Partial sums of products with random signs stay within four times the root of their squares, but for less than one
/// in 10^4, and those of products with one sign within |sum|; each step errs by a share of the partial sum. It is an
/// estimate that holds for operands like ours, not a bound for all; a result that belongs to another line or column is
/// far beyond.
///
/// `parts` says how many partial sums are rounded to the type of the result before they are added up (1: none is).
/// Partial sums may be far larger than a sum in which they cancel, and so may what rounding them costs.
double largest_error(const Exactness& exactness, std::size_t k, double sum, double sum_of_squares,
                     std::size_t parts = 1);

/// The outcome of a comparison with the reference.
struct ElementErrors {
  std::uint64_t wrong = 0;   ///< results that differ by more than largest_error, or are not finite
  double largest_share = 0;  ///< largest difference over largest_error, where both are finite and that is not 0
};

/// Compares the results with the reference (long double, terms in order). `parts` as in largest_error.
ElementErrors check_elements(const SampledProduct& product, const Exactness& exactness, std::size_t parts = 1);

}  // namespace assay::cuda
