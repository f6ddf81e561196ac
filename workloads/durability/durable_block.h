// durable_block: the 4 KiB of one acknowledged write, which say on their own whose they are and of which generation.
// Pure.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "probes/core/words.h"

namespace assay::durability {

/// How a write becomes durable.
enum class DurableOperation : std::uint8_t { overwrite, append, rename };

constexpr auto words_of(DurableOperation) {
  using enum DurableOperation;
  return std::to_array<Word<DurableOperation>>({{overwrite, "overwrite"}, {append, "append"}, {rename, "rename"}});
}

/// The place of a block: a slot that is overwritten, a record of a log, a name that files are renamed to.
struct DurableItem {
  DurableOperation operation = DurableOperation::overwrite;
  std::uint32_t stream = 0;  ///< of its writer, less than kMostStreams
  std::uint32_t index = 0;   ///< less than kMostItems
  friend auto operator<=>(const DurableItem&, const DurableItem&) = default;
};
inline constexpr std::uint32_t kMostStreams = 256, kMostItems = 1U << 24U;

/// The place as one number, and back; nothing for a number that is none.
std::uint64_t packed(const DurableItem& item);
std::optional<DurableItem> unpacked(std::uint64_t number);

/// One write of one run.
struct DurableWrite {
  std::uint64_t nonce = 0, writer = 0;
  DurableItem item;
  std::uint64_t generation = 0;  ///< from 1; a later write of the same stream has a larger one
};

inline constexpr std::size_t kDurableBlock = 4096;

/// Fills `block`, kDurableBlock bytes, with what `write` stores.
void make_block(const DurableWrite& write, std::span<std::byte> block);

/// State of the place of an acknowledged write.
enum class BlockState : std::uint8_t {
  right,
  lost,         ///< nothing, or zeros
  rolled_back,  ///< a whole block of an older generation
  torn          ///< anything else: no write made it
};

/// Compares `found` with the last acknowledged write to a place. Every byte counts.
BlockState state_of(const DurableWrite& acknowledged, std::span<const std::byte> found);

/// The generation that `found` states, if it begins as a block does.
std::optional<std::uint64_t> generation_in(std::span<const std::byte> found);

}  // namespace assay::durability
