// durable_block: a mark, the generation, and payload of a key that holds everything else.
#include "workloads/durability/durable_block.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "workloads/storage/shared/payload.h"

namespace assay::durability {
namespace {

constexpr std::array<char, 8> kMark = {'d', 'u', 'r', 'a', 'b', 'l', 'e', '1'};
constexpr std::size_t kHeader = kMark.size() + sizeof(std::uint64_t);
constexpr unsigned kIndexBits = 24, kStreamBits = 8, kItemBits = 34;
static_assert(kMostItems == 1U << kIndexBits && kMostStreams == 1U << kStreamBits);

cluster_storage::PayloadKey key_of(const DurableWrite& write) {
  return {.rank = write.writer << kItemBits | packed(write.item), .step = write.generation, .nonce = write.nonce};
}

}  // namespace

std::uint64_t packed(const DurableItem& item) {
  return (static_cast<std::uint64_t>(item.operation) << kStreamBits | item.stream) << kIndexBits | item.index;
}

std::optional<DurableItem> unpacked(std::uint64_t number) {
  const std::uint64_t operation = number >> (kIndexBits + kStreamBits);
  if (operation >= words_of(DurableOperation{}).size()) return std::nullopt;
  return DurableItem{.operation = static_cast<DurableOperation>(operation),
                     .stream = static_cast<std::uint32_t>(number >> kIndexBits) & (kMostStreams - 1),
                     .index = static_cast<std::uint32_t>(number) & (kMostItems - 1)};
}

void make_block(const DurableWrite& write, std::span<std::byte> block) {
  std::memcpy(block.data(), kMark.data(), kMark.size());
  std::memcpy(block.data() + kMark.size(), &write.generation, sizeof write.generation);
  cluster_storage::fill_payload(key_of(write), 0, block.subspan(kHeader));
}

std::optional<std::uint64_t> generation_in(std::span<const std::byte> found) {
  if (found.size() < kHeader || std::memcmp(found.data(), kMark.data(), kMark.size()) != 0) return std::nullopt;
  std::uint64_t generation = 0;
  std::memcpy(&generation, found.data() + kMark.size(), sizeof generation);
  return generation;
}

BlockState state_of(const DurableWrite& acknowledged, std::span<const std::byte> found) {
  if (std::ranges::all_of(found, [](std::byte one) { return one == std::byte{0}; })) return BlockState::lost;
  const auto generation = generation_in(found);
  if (!generation || found.size() != kDurableBlock || *generation > acknowledged.generation) return BlockState::torn;
  DurableWrite said = acknowledged;
  said.generation = *generation;
  std::vector<std::byte> block(kDurableBlock);
  make_block(said, block);
  if (!std::ranges::equal(block, found)) return BlockState::torn;
  return *generation == acknowledged.generation ? BlockState::right : BlockState::rolled_back;
}

}  // namespace assay::durability
