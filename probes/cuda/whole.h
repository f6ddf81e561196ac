// whole: operands of whole numbers whose product is exact in every type, and a check of the whole product without a
// second one. Plain constexpr C++: the kernels and the host's tests run the same lines.
//
// Small numbers (-1, 0 and 1) make sums of many terms, but leave all bits below the first one of an operand 0: a bit of
// a factor that is stuck at 0 changes nothing. So there are two more products: the elements of one matrix are wide,
// with all bits that the types have, and each line of the other has a single 1 or -1, which hands them through.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "probes/cuda/mixed.h"

namespace assay::cuda {

/// Which elements are wide: none, those of A, those of B.
enum class WholeForm { small, wide_a, wide_b };
inline constexpr WholeForm kWholeForms[] = {WholeForm::small, WholeForm::wide_a, WholeForm::wide_b};

/// Numbers of one product op(A) op(B): lines of A and columns of B have `k` terms each.
struct WholeNumbers {
  std::size_t m = 0, n = 0, k = 0;
  std::uint32_t density = 0;  ///< share of small elements that are not 0, of 2^32
  std::uint64_t seed = 0;
  WholeForm form = WholeForm::small;
  unsigned bits = 0;  ///< of a wide element: 1 to kMostWideBits
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

/// Bits of a wide element at most: a wrong result is then below 2^20, as whole_line_is_right has it.
inline constexpr unsigned kMostWideBits = 20;

/// Numbers of a product of which the matrix that `form` names has elements of `bits` bits (kMostWideBits at most).
constexpr WholeNumbers wide_numbers(std::size_t m, std::size_t n, std::size_t k, std::uint64_t seed, WholeForm form,
                                    unsigned bits) {
  return {.m = m,
          .n = n,
          .k = k,
          .density = 0,
          .seed = seed,
          .form = form,
          .bits = bits < kMostWideBits ? bits : kMostWideBits};
}

/// Which of the streams of numbers; `place` is that of the only element in a line beside wide ones.
enum class WholeStream : std::uint64_t { place = 0, a = 1, b = 2, weight = 3 };

constexpr std::uint64_t whole_seed(const WholeNumbers& numbers, WholeStream stream) {
  return numbers.seed * 4 + static_cast<std::uint64_t>(stream);
}

/// Element `term` of line `line` of A, or of column `line` of B.
constexpr int whole_element(const WholeNumbers& numbers, WholeStream matrix, std::size_t line, std::size_t term) {
  const auto sign = [](std::uint64_t bits) { return (bits >> 63U) != 0 ? 1 : -1; };
  const std::uint64_t bits = mixed(whole_seed(numbers, matrix), line * numbers.k + term);
  if (numbers.form == WholeForm::small) return static_cast<std::uint32_t>(bits) > numbers.density ? 0 : sign(bits);
  if ((matrix == WholeStream::a) == (numbers.form == WholeForm::wide_a)) {
    const std::uint64_t first = std::uint64_t{1} << (numbers.bits - 1);
    return sign(bits) * static_cast<int>(first | (bits & (first - 1)));
  }
  const std::uint64_t place = mixed(whole_seed(numbers, WholeStream::place), line);
  return place % numbers.k == term ? sign(place) : 0;
}

/// Random weight of column `column` of the product, modulo 2^64.
constexpr std::uint64_t whole_weight(const WholeNumbers& numbers, std::size_t column) {
  return mixed(whole_seed(numbers, WholeStream::weight), column);
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
