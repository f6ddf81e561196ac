// State of the place of an acknowledged write: right, lost, rolled back or torn.
#include <vector>

#include <gtest/gtest.h>

#include "workloads/durability/durable_stream.h"

namespace assay::durability {
namespace {

const DurableWrite kWrite = {.nonce = 7,
                             .writer = 2,
                             .item = {.operation = DurableOperation::append, .stream = 3, .index = 11},
                             .generation = 42};

std::vector<std::byte> block_of(const DurableWrite& write) {
  std::vector<std::byte> block(kDurableBlock);
  make_block(write, block);
  return block;
}

DurableWrite of_generation(std::uint64_t generation) {
  DurableWrite write = kWrite;
  write.generation = generation;
  return write;
}

TEST(durable_block, the_last_acknowledged_write_is_right_and_an_older_one_is_rolled_back) {
  EXPECT_EQ(state_of(kWrite, block_of(kWrite)), BlockState::right);
  EXPECT_EQ(state_of(kWrite, block_of(of_generation(41))), BlockState::rolled_back);
  EXPECT_EQ(generation_in(block_of(of_generation(41))), 41U);
}

TEST(durable_block, nothing_and_zeros_are_lost) {
  EXPECT_EQ(state_of(kWrite, {}), BlockState::lost);
  EXPECT_EQ(state_of(kWrite, std::vector<std::byte>(kDurableBlock)), BlockState::lost);
  EXPECT_EQ(state_of(kWrite, std::vector<std::byte>(100)), BlockState::lost);
}

TEST(durable_block, one_wrong_bit_anywhere_is_torn) {
  for (std::size_t at = 0; at < kDurableBlock; at += 5) {
    auto block = block_of(kWrite);
    block[at] ^= std::byte{1};
    EXPECT_EQ(state_of(kWrite, block), BlockState::torn) << at;
  }
}

TEST(durable_block, parts_of_two_writes_a_cut_block_and_one_never_acknowledged_are_torn) {
  auto mixed = block_of(of_generation(41));
  const auto newer = block_of(kWrite);
  std::copy(newer.begin(), newer.begin() + 512, mixed.begin());
  EXPECT_EQ(state_of(kWrite, mixed), BlockState::torn);
  auto cut = block_of(kWrite);
  cut.resize(512);
  EXPECT_EQ(state_of(kWrite, cut), BlockState::torn);
  EXPECT_EQ(state_of(kWrite, block_of(of_generation(43))), BlockState::torn);
}

TEST(durable_block, a_block_of_another_run_writer_or_place_is_torn) {
  auto others = std::vector(6, kWrite);
  others[0].nonce = 8;
  others[1].writer = 1;
  others[2].item.operation = DurableOperation::overwrite;
  others[3].item.stream = 2;
  others[4].item.index = 12;
  others[5] = of_generation(0);
  others[5].writer = 9;
  for (const auto& other : others) EXPECT_EQ(state_of(kWrite, block_of(other)), BlockState::torn);
}

TEST(durable_block, a_place_goes_through_the_ledger_unchanged_and_a_number_that_is_none_is_refused) {
  for (const auto operation : {DurableOperation::overwrite, DurableOperation::append, DurableOperation::rename}) {
    const DurableItem item = {.operation = operation, .stream = kMostStreams - 1, .index = kMostItems - 1};
    EXPECT_EQ(unpacked(packed(item)), item);
  }
  EXPECT_FALSE(unpacked(~std::uint64_t{0}));
  EXPECT_FALSE(unpacked(std::uint64_t{3} << 32U));
}

}  // namespace
}  // namespace assay::durability
