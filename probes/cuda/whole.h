// whole: operands of -1, 0 and 1 whose product is exact in every type, and a check of the whole product without a
// second one. Plain constexpr C++: the kernels and the host's tests run the same lines.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace assay::cuda {

/// Numbers of one product op(A) op(B): lines of A and columns of B have `k` terms each.
struct WholeNumbers {
  std::size_t m = 0, n = 0, k = 0;
  std::uint32_t density = 0;  ///< share of elements that are not 0, of 2^32
  std::uint64_t seed = 0;
};

/// Largest result that every type of a result holds exactly, next to those below it (bf16 has 8 bits).
inline constexpr double kLargestWhole = 256;

/// As many elements that are not 0 as give results with a standard deviation of 20. Then a result is beyond
/// kLargestWhole in less than one of 10^28, and no partial sum has more than the 14 bits of the narrowest accumulator
/// (FP8 on Hopper) as long as k is at most 16,384 (in longer sums again with that probability).
inline WholeNumbers whole_numbers(std::size_t m, std::size_t n, std::size_t k, std::uint64_t seed) {
  constexpr double kDeviation = 20, kAll = 4294967295.0;
  const double share = kDeviation / std::sqrt(static_cast<double>(k));
  return {
      .m = m, .n = n, .k = k, .density = static_cast<std::uint32_t>(share >= 1 ? kAll : share * kAll), .seed = seed};
}

/// SplitMix64 of one number (Steele, Lea & Flood 2014).
constexpr std::uint64_t whole_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

/// Which of the three streams of numbers.
enum class WholeStream : std::uint64_t { a = 1, b = 2, weight = 3 };

constexpr std::uint64_t whole_seed(const WholeNumbers& numbers, WholeStream stream) {
  return numbers.seed * 4 + static_cast<std::uint64_t>(stream);
}

/// Element `term` of line `line` of A, or of column `line` of B: -1, 0 or 1.
constexpr int whole_element(const WholeNumbers& numbers, WholeStream matrix, std::size_t line, std::size_t term) {
  const std::uint64_t bits = whole_bits(whole_seed(numbers, matrix), line * numbers.k + term);
  if (static_cast<std::uint32_t>(bits) > numbers.density) return 0;
  return (bits >> 63U) != 0 ? 1 : -1;
}

/// Random weight of column `column` of the product, modulo 2^64.
constexpr std::uint64_t whole_weight(const WholeNumbers& numbers, std::size_t column) {
  return whole_bits(whole_seed(numbers, WholeStream::weight), column);
}

/// Term `term` of op(B) times the weights, modulo 2^64.
constexpr std::uint64_t weighted_term(const WholeNumbers& numbers, std::size_t term) {
  std::uint64_t sum = 0;
  for (std::size_t column = 0; column < numbers.n; ++column) {
    const int element = whole_element(numbers, WholeStream::b, column, term);
    sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(element)) * whole_weight(numbers, column);
  }
  return sum;
}

/// Whether line `line` of a result is op(A) op(B) in every element (Freivalds 1979, modulo 2^64): `terms` are all
/// weighted_term, and result(column) is the number that stands there, which must be whole. A line with any wrong
/// element passes with a probability below 2^-40, since its error would have to be orthogonal to random weights.
template <class Result>
constexpr bool whole_line_is_right(const WholeNumbers& numbers, std::size_t line, const std::uint64_t* terms,
                                   Result result) {
  constexpr double kBeyond = 1048576;  // 2^20; no right result is near it
  std::uint64_t expected = 0, found = 0;
  for (std::size_t term = 0; term < numbers.k; ++term) {
    const int element = whole_element(numbers, WholeStream::a, line, term);
    expected += static_cast<std::uint64_t>(static_cast<std::int64_t>(element)) * terms[term];
  }
  for (std::size_t column = 0; column < numbers.n; ++column) {
    const double value = result(column);
    if (!(value > -kBeyond && value < kBeyond)) return false;  // not a number either
    const auto whole = static_cast<std::int64_t>(value);
    if (static_cast<double>(whole) != value) return false;
    found += static_cast<std::uint64_t>(whole) * whole_weight(numbers, column);
  }
  return expected == found;
}

}  // namespace assay::cuda
