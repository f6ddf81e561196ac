// payload_words: 64-bit words that encode their place, and what they must add up to; the same on host and GPU.
#pragma once

#include <cstdint>

namespace assay::cuda {

/// The odd number next to 2^64 over the golden ratio: multiples of it are all different and use all bits (Knuth, TAOCP
/// vol. 3, 6.4).
inline constexpr std::uint64_t kPayloadStep = 0x9e3779b97f4a7c15;

/// Word `index` of the payload `seed`. Different words of one payload are never equal.
constexpr std::uint64_t payload_word(std::uint64_t seed, std::uint64_t index) {
  return seed + (index + 1) * kPayloadStep;
}
static_assert(payload_word(5, 0) == 5 + kPayloadStep);

/// The sum, modulo 2^64, of the first `words` words of the payload `seed`.
constexpr std::uint64_t payload_sum(std::uint64_t seed, std::uint64_t words) {
  // Of two neighbours one is even: halved before the product, because the product may not fit.
  const std::uint64_t triangle = words % 2 == 0 ? words / 2 * (words + 1) : (words + 1) / 2 * words;
  return seed * words + triangle * kPayloadStep;
}
static_assert(payload_sum(7, 3) == payload_word(7, 0) + payload_word(7, 1) + payload_word(7, 2));

/// A word that no place of the payload `seed` holds within its first 2^40 words; written over a target before a copy,
/// so that a copy that did not happen shows.
constexpr std::uint64_t payload_poison(std::uint64_t seed) { return seed; }
static_assert(payload_poison(3) != payload_word(3, 0));

}  // namespace assay::cuda
