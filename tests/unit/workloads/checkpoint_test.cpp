// The parts of a checkpoint: the payload can be made again, and no damage to a shard passes.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "probes/core/filesystem_facts.h"
#include "workloads/storage/shared/shard.h"

namespace assay::cluster_storage {
namespace {

constexpr PayloadKey kKey{.rank = 3, .step = 7};
constexpr ChunkPlan kChunks{.chunk = 2 * kDirectBlock, .depth = 2, .deadline = {60}};
constexpr std::size_t kShard = 5 * kDirectBlock;  // the last chunk is half a chunk

std::vector<std::byte> payload(const PayloadKey& key, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  fill_payload(key, offset, bytes);
  return bytes;
}

std::uint64_t checksum(std::string_view text) {
  Checksum sum;
  sum.add(std::as_bytes(std::span(text)));
  return sum.value();
}

void flip(const std::string& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(offset);
  file.put(byte);
}

/// One saved shard in a directory of its own.
class shard : public testing::Test {
 protected:
  void SetUp() override {
    const auto facts = filesystem_facts(".");
    if (!facts.unfit.empty()) GTEST_SKIP() << facts.unfit;
    demand_io_uring();
    fill_payload(kKey, 0, memory_.bytes());
    save_shard(scratch_.path(), kKey, memory_.bytes(), kChunks);
    std::ranges::fill(memory_.bytes(), std::byte{0});
  }
  auto load(const PayloadKey& key = kKey) { return load_shard(scratch_.path(), key, memory_.bytes(), kChunks); }
  [[nodiscard]] std::string path() const { return scratch_.path() + "/" + shard_name(kKey.rank); }

  ScratchDirectory scratch_{"."};
  DirectMemory memory_{kShard};
};

}  // namespace

TEST(payload, of_the_same_key_is_the_same) { EXPECT_EQ(payload(kKey, 0, 4096), payload(kKey, 0, 4096)); }

TEST(payload, of_another_rank_step_or_offset_differs) {
  const auto here = payload(kKey, 0, 4096);
  EXPECT_NE(here, payload({.rank = 4, .step = 7}, 0, 4096));
  EXPECT_NE(here, payload({.rank = 3, .step = 8}, 0, 4096));
  EXPECT_NE(here, payload({.rank = 7, .step = 3}, 0, 4096));
  EXPECT_NE(here, payload(kKey, 8, 4096));
}

TEST(payload, of_another_run_shares_no_block_with_it) {
  const auto one = payload({.rank = 3, .step = 7, .nonce = 1}, 0, 64 * kDirectBlock);
  const auto other = payload({.rank = 3, .step = 7, .nonce = 2}, 0, 64 * kDirectBlock);
  std::set<std::string_view> blocks;
  for (const auto* bytes : {&one, &other}) {
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    for (std::size_t at = 0; at < text.size(); at += kDirectBlock) blocks.insert(text.substr(at, kDirectBlock));
  }
  EXPECT_EQ(blocks.size(), 2U * 64);
}

TEST(payload, nonces_are_drawn_anew) { EXPECT_NE(fresh_payload_nonce(), fresh_payload_nonce()); }

TEST(payload, is_one_stream_whatever_the_pieces) {
  auto pieces = payload(kKey, 0, 1024);
  const auto rest = payload(kKey, 1024, 3072);
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  EXPECT_EQ(pieces, payload(kKey, 0, 4096));
}

TEST(payload, is_splitmix64_on_every_processor) {
  const auto bytes = payload(kKey, 0, 8197 * sizeof(std::uint64_t));
  std::uint64_t folded = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof folded) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    folded = folded * 31 + word;
  }
  EXPECT_EQ(folded, 0xa843620d04bbe841U);  // the same sum by Python's whole numbers
}

TEST(payload, mismatches_are_counted_by_the_byte) {
  auto found = payload(kKey, 64, 3 * 4096 + 24);
  EXPECT_EQ(payload_mismatches(kKey, 64, found), 0U);
  for (const std::size_t at : {9, 10, 4095, 4096, 12287, 12288, 12311}) found[at] ^= std::byte{0x80};
  EXPECT_EQ(payload_mismatches(kKey, 64, found), 7U);
  EXPECT_EQ(payload_mismatches(kKey, 64, std::span(found).first(4096)), 3U);
  EXPECT_EQ(payload_mismatches(kKey, 64 + 4096, std::span(found).subspan(4096, 8)), 1U);
}

TEST(checksum, is_xxh64) {
  EXPECT_EQ(checksum(""), 0xef46db3751d8e999U);  // the test vectors of the xxHash repository
  EXPECT_EQ(checksum("abc"), 0x44bc2cf5ad770999U);
  EXPECT_EQ(checksum("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1U);
}

TEST(checksum, of_pieces_is_that_of_the_whole) {
  const auto bytes = payload(kKey, 0, 4096);
  Checksum whole, pieces;
  whole.add(bytes);
  pieces.add(std::span(bytes).first(1024));
  pieces.add(std::span(bytes).subspan(1024));
  EXPECT_EQ(whole.value(), pieces.value());
}

TEST_F(shard, comes_back_as_it_was_saved) {
  const auto footer = load();
  ASSERT_TRUE(footer.has_value()) << footer.error().text();
  EXPECT_EQ(shard_mismatches(*footer, memory_.bytes()), 0U);
  EXPECT_FALSE(std::filesystem::exists(path() + ".tmp"));
}

TEST_F(shard, is_written_past_the_page_cache) { EXPECT_EQ(resident_pages(path()), 0U); }

TEST_F(shard, with_a_flipped_byte_is_a_mismatch_in_payload_and_checksum) {
  flip(path(), kShard - 1);
  const auto footer = load();
  ASSERT_TRUE(footer.has_value()) << footer.error().text();
  EXPECT_EQ(shard_mismatches(*footer, memory_.bytes()), 2U);
}

TEST_F(shard, with_a_flipped_byte_in_its_footer_is_refused) {
  flip(path(), kShard + 40);
  ASSERT_FALSE(load().has_value());
  EXPECT_NE(load().error().text().find("footer does not have the hash"), std::string::npos);
}

TEST_F(shard, that_is_torn_is_refused) {
  std::filesystem::resize_file(path(), kShard);
  EXPECT_NE(load().error().text().find("is 20480 B long, not 24576"), std::string::npos) << load().error().text();
}

TEST_F(shard, whose_footer_was_never_written_is_refused) {
  std::filesystem::resize_file(path(), kShard);
  std::filesystem::resize_file(path(), kShard + kDirectBlock);  // allocated but not written reads as zero
  EXPECT_NE(load().error().text().find("no shard footer"), std::string::npos) << load().error().text();
}

TEST_F(shard, under_its_temporary_name_is_never_taken) {
  std::filesystem::rename(path(), path() + ".tmp");
  EXPECT_NE(load().error().text().find("is not there"), std::string::npos) << load().error().text();
}

TEST_F(shard, of_another_step_is_refused) {
  const auto footer = load({.rank = 3, .step = 8});
  ASSERT_FALSE(footer.has_value());
  EXPECT_NE(footer.error().text().find("is rank 3 of step 7"), std::string::npos);
}

TEST_F(shard, of_another_run_is_refused) {
  const auto footer = load({.rank = 3, .step = 7, .nonce = 1});
  ASSERT_FALSE(footer.has_value());
  EXPECT_NE(footer.error().text().find("is of another run"), std::string::npos);
}

TEST_F(shard, is_never_written_over) {
  std::ofstream(path() + ".tmp") << "another writer";
  EXPECT_THROW(save_shard(scratch_.path(), kKey, memory_.bytes(), kChunks), std::system_error);
}

TEST(resident_pages, are_seen_where_there_are_some_and_gone_after_a_drop) {
  if (const auto facts = filesystem_facts("."); !facts.unfit.empty()) GTEST_SKIP() << facts.unfit;
  const ScratchDirectory scratch(".");
  const std::string path = scratch.path() + "/buffered";
  std::ofstream(path) << std::string(8 * kDirectBlock, 'x');
  EXPECT_EQ(resident_pages(path), 8U);
  DirectFile::open_to_read(path, kChunks);  // O_DIRECT leaves what is there
  const int file = open(path.c_str(), O_RDONLY);
  fsync(file);  // only clean pages can be dropped
  close(file);
  drop_pages(path);
  EXPECT_EQ(resident_pages(path), 0U);
}

}  // namespace assay::cluster_storage
