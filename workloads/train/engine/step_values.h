// step_values: the arithmetic that the engine on hosts and the kernels of a device share, number by number. Plain
// constexpr C++20, which nvcc compiles for a device, too: tests on a host are tests of the arithmetic of kernels.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "workloads/train/graph/token_place.h"

namespace assay::train {

/// Modulus of the exact arithmetic. No power 2^(2^j) is 1 modulo it, so that a flipped bit of an exponent shows.
inline constexpr int kModulus = 7;

inline constexpr std::uint64_t kStepSeed = 20240417;  ///< of weights and tokens; any would do
inline constexpr float kExactTarget = 3;              ///< of the true token's logit in exact arithmetic

/// 64 well-mixed bits of a pair.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// The residue from -3 to 3 of a whole number of at most 2^24 in size.
constexpr float residue(float value) {
  constexpr float kRounds = 12582912;  // 1.5 x 2^23: an addend loses its fraction; no library call
  const float whole = (value * (1.0F / kModulus) + kRounds) - kRounds;
  float rest = value - whole * kModulus;  // exact: both are whole numbers below 2^24
  rest -= rest > 3 ? kModulus : 0;
  rest += rest < -3 ? kModulus : 0;
  return rest;
}

/// A BF16 number as it is kept.
struct Bf16 {
  std::uint16_t bits = 0;
};
/// A kept number as one that is calculated with, and the nearest kept number, of two as near the even one.
constexpr float widened(float value) { return value; }
constexpr float widened(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16U); }
template <class Number>
constexpr Number narrowed(float value);
template <>
constexpr float narrowed<float>(float value) {
  return value;
}
template <>
constexpr Bf16 narrowed<Bf16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<std::uint16_t>(bits >> 16U | 0x40U)};  // no number
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

/// Numbers of one matrix that are neighbours in the undivided one: `rows` rows of `count`. Values and prints of numbers
/// follow from their places in the undivided matrix, so that they do not depend on the plan.
struct WeightBlock {
  std::uint64_t id = 0, place = 0, whole_columns = 0;  ///< of the undivided matrix; place: of the first number in it
  std::size_t offset = 0, rows = 0, count = 0, stride = 0;  ///< in the rank's memory; stride: from row to row
  bool gain = false;                                        ///< of a norm
  bool expert = false;                                      ///< of a routed expert
  bool printed = true;                                      ///< gains count on one tp rank only
  [[nodiscard]] constexpr std::size_t size() const { return rows * count; }
  /// Place of number `i` of a row in the rank's memory, and in the undivided matrix.
  [[nodiscard]] constexpr std::size_t at(std::size_t row, std::size_t i) const { return offset + row * stride + i; }
  [[nodiscard]] constexpr std::uint64_t place_of(std::size_t row, std::size_t i) const {
    return place + row * whole_columns + i;
  }
  /// Its random bits.
  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t seed, std::size_t row, std::size_t i) const {
    return mixed(seed ^ id, place_of(row, i));
  }
  /// The part of its value in a print. + 0: of the two zeros, which are equal, one.
  [[nodiscard]] constexpr std::uint64_t print(std::size_t row, std::size_t i, float value) const {
    return mixed(id + place_of(row, i), std::bit_cast<std::uint32_t>(value + 0.0F));
  }
};

inline constexpr float kWeightSpread = 0.02F;  ///< standard deviation of the first weights, as in GPT-2

/// The weight of exact arithmetic, from -3 to 3, of random bits.
constexpr float whole_weight(std::uint64_t bits) { return static_cast<float>(bits % kModulus) - 3; }

/// Of a standard normal number (Box & Muller 1958), sqrt(-2 log(radius)) cos(2 pi turn).
template <class Real>
struct NormalParts {
  Real radius, turn;  ///< from above 0 to 1
};
template <class Real>
constexpr NormalParts<Real> normal_parts(std::uint64_t bits) {
  constexpr Real kShare = Real{1} / 4294967296;
  return {(static_cast<Real>(bits >> 32U) + Real{0.5}) * kShare, static_cast<Real>(bits & 0xffffffffU) * kShare};
}

constexpr bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7F800000U) != 0x7F800000U; }

/// The tokens of one rank in one step: of each micro-batch its tokens, then those that follow them.
struct TokenDraw {
  TokenPlaces places;
  std::uint64_t seed = 0;  ///< of the step
  std::uint64_t vocab = 1;
  [[nodiscard]] constexpr std::size_t size() const {
    return static_cast<std::size_t>(2 * places.tokens() * places.micro_batches);
  }
  [[nodiscard]] constexpr std::int32_t token(std::size_t i) const {
    const auto each = places.tokens(), place = static_cast<std::int64_t>(i);
    const auto follows = static_cast<std::uint64_t>(place / each % 2);
    return static_cast<std::int32_t>(mixed(seed, places.place(place / (2 * each), place % each) + follows) % vocab);
  }
};

/// The gradient of a gain is summed over groups of so many rows, and then over the groups, both in order.
inline constexpr std::size_t kGainRows = 32;
constexpr std::size_t gain_groups(std::size_t rows) { return (rows + kGainRows - 1) / kGainRows; }
/// The sum of `column` over the rows of group `group`.
template <class Number>
constexpr float gain_part(std::size_t rows, std::size_t columns, const Number* x, const float* inverse,
                          const Number* above, std::size_t group, std::size_t column, bool exact) {
  const std::size_t end = (group + 1) * kGainRows < rows ? (group + 1) * kGainRows : rows;
  float sum = 0;
  for (std::size_t row = group * kGainRows; row < end; ++row) {
    const float one = widened(above[row * columns + column]) * widened(x[row * columns + column]);
    sum = exact ? residue(sum + one) : sum + one * inverse[row];
  }
  return sum;
}

}  // namespace assay::train
