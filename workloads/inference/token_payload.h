// token_payload: content of a token on its way to its experts, their function of it, and the expected result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "probes/collective/pattern.h"
#include "workloads/storage/shared/payload.h"

namespace assay::inference {

/// In the place of an expert where a slot has none.
inline constexpr std::uint16_t kNoExpert = UINT16_MAX;

/// Bytes of `hidden` numbers of `each` B: as FP8 (1 B) with a scale in fp32 for every 128 of them, as DeepEP sends
/// them. Whole words.
constexpr std::size_t token_bytes(std::int64_t hidden, std::int64_t each) {
  constexpr std::int64_t kScaled = 128, kScale = 4, kWhole = 8;
  const std::int64_t scales = each == 1 ? (hidden + kScaled - 1) / kScaled * kScale : 0;
  return static_cast<std::size_t>((hidden * each + scales + kWhole - 1) / kWhole * kWhole);
}
static_assert(token_bytes(7168, 1) == 7168 + 224 && token_bytes(7168, 2) == 14'336);

/// The bytes of token `token` in step `step` of the run that drew `nonce`: every token of every step and run is
/// another.
constexpr cluster_storage::PayloadKey token_key(std::uint64_t nonce, std::uint64_t step, std::int64_t token) {
  return {.rank = static_cast<std::uint64_t>(token), .step = step, .nonce = nonce};
}

/// Function of an expert, or of the sum of several, on a word w of a token: factor * w + summand, modulo 2^64. Sums of
/// it are exact in any order, and an expert that is missing, doubled or another one shows in every word.
struct ExpertMap {
  std::uint64_t factor = 0, summand = 0;
  /// Adds expert `expert` of the run that drew `nonce`.
  constexpr void add(std::uint64_t nonce, std::int64_t expert) {
    const auto number = static_cast<std::uint64_t>(expert);
    factor += collective::mixed(nonce, 2 * number) | 1;
    summand += collective::mixed(nonce, 2 * number + 1);
  }
  [[nodiscard]] constexpr std::uint64_t of(std::uint64_t word) const { return factor * word + summand; }
};

/// Head before the payload of a slot; the experts, 2 B each, follow it.
struct SlotHead {
  std::uint64_t token = 0;  ///< counted over all ranks
  std::uint64_t proof = 0;  ///< proof_of() of the token
};

/// A number that only this token in this step and run has.
constexpr std::uint64_t proof_of(std::uint64_t nonce, std::uint64_t step, std::int64_t token) {
  return collective::mixed(collective::mixed(nonce, step), static_cast<std::uint64_t>(token));
}

/// Writes what `map` makes of the words `token` to `result`, word i from word i modulo the token's length.
void apply(const ExpertMap& map, std::span<const std::uint64_t> token, std::span<std::uint64_t> result);

/// Adds `part` to `sum`, word by word. Same lengths.
void add_words(std::span<const std::uint64_t> part, std::span<std::uint64_t> sum);

/// Whether `found` is what `map` makes of `token`.
bool is_applied(const ExpertMap& map, std::span<const std::uint64_t> token, std::span<const std::uint64_t> found);

}  // namespace assay::inference
