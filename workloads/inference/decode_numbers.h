// decode_numbers: BF16, and the numbers of weights, caches and inputs out of a counter; the same on hosts and in
// kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "probes/collective/pattern.h"

namespace assay::inference {

/// The upper half of an fp32.
using Bf16 = std::uint16_t;

/// The number with these `bits`, and the nearest BF16 to `value`, ties to even. Finite values only.
constexpr float wide(Bf16 bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
constexpr Bf16 narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static_assert(wide(narrow(-3)) == -3 && wide(narrow(1.00390625F)) == 1 && wide(narrow(1.01171875F)) == 1.015625F);

/// Values of weights, cache and inputs. gaussian: normal numbers. ring: -3 to 3, folded modulo 7 after every operation,
/// in which every sum is exact and has one result.
enum class DecodeNumbers { gaussian, ring };

/// The residue of a whole number modulo 7 from -3 to 3, exact up to 2^22; other numbers stay not whole.
constexpr float fold(float value) {
  constexpr float kRounds = 12'582'912;  // 1.5 x 2^23: adding it leaves no place for a fraction
  const float seventh = value / 7;
  return value - 7 * (seventh + kRounds - kRounds);
}
static_assert(fold(3) == 3 && fold(4) == -3 && fold(-4) == 3 && fold(14) == 0 && fold(700'004) == -3);

/// The ring number of 64 random bits.
constexpr int ring_number(std::uint64_t random) { return static_cast<int>(random % 7) - 3; }

/// The number of 64 random bits: of a ring, or a sum of four uniform numbers of 16 bits, mean 0, with this deviation.
constexpr float number_of(DecodeNumbers numbers, std::uint64_t random, float deviation) {
  if (numbers == DecodeNumbers::ring) return static_cast<float>(ring_number(random));
  constexpr float kDeviation = 37'837.2F;  // sqrt(4 / 12) x 65,536
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(random >> (16 * i) & 0xffff) - 32'767.5F;
  return sum / kDeviation * deviation;
}

/// Streams of one seed besides that of the weights.
inline constexpr std::uint64_t kCacheStream = 1, kInputStream = 2;

/// A product keeps the size of its input where weights have a variance of one over its width.
inline float weight_deviation(std::int64_t hidden) { return 1 / std::sqrt(static_cast<float>(hidden)); }

}  // namespace assay::inference
