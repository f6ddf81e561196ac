// token_place: where the tokens of a rank are in their sequence, and in the step. Plain constexpr, which a device
// compiles, too.
#pragma once

#include <cstdint>

namespace assay::train {

/// Where a rank's token number `own` of a sequence is in the whole of it. cp divides a sequence into 2 cp pieces, of
/// which each rank has one from the front and one from the back, so that all have as much of the causal attention.
constexpr std::int64_t place_in_sequence(std::int64_t seq, std::int64_t cp, std::int64_t cp_rank, std::int64_t own) {
  if (cp == 1) return own;
  const std::int64_t piece = seq / (2 * cp);
  return own < piece ? cp_rank * piece + own : (2 * cp - 2 - cp_rank) * piece + own;
}
static_assert(place_in_sequence(16, 2, 1, 5) == 9 && place_in_sequence(16, 2, 0, 4) == 12);

/// The tokens of one rank. A token's place in the step is the same however the step is divided.
struct TokenPlaces {
  std::int64_t seq = 0, cp = 1, cp_rank = 0, dp = 0;  ///< tokens of a sequence; dp: of this rank
  std::int64_t micro_batch = 1, micro_batches = 1;    ///< sequences of one; how many there are
  /// Tokens that the rank has of a micro-batch.
  [[nodiscard]] constexpr std::int64_t tokens() const { return micro_batch * (seq / cp); }
  /// Place in the step of token number `own` of micro-batch `number`.
  [[nodiscard]] constexpr std::uint64_t place(std::int64_t number, std::int64_t own) const {
    const std::int64_t each = seq / cp, sequence = (dp * micro_batches + number) * micro_batch + own / each;
    return static_cast<std::uint64_t>(sequence * seq + place_in_sequence(seq, cp, cp_rank, own % each));
  }
};

}  // namespace assay::train
