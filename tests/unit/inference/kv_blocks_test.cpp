// Blocks of a cache between two ends of sockets: every byte in its place, and what is lost, doubled or changed is
// named.
#include <future>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/unit/inference/recorded.h"
#include "workloads/inference/kv_run.h"

namespace assay::inference::kv_blocks_test {
namespace {

const KvShape kShape{.model = {.layers = 3, .hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 16}, .tokens = 64};
constexpr KvKey kKey{.nonce = 7, .transfer = 2};
constexpr std::size_t kStreams = 3;
const auto kNoWatch = [] {};

std::pair<host::Streams, host::Streams> connected() {
  std::pair<host::Streams, host::Streams> both;
  for (std::size_t i = 0; i < kStreams; ++i) {
    int ends[2] = {};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
    both.first.emplace_back(ends[0]);
    both.second.emplace_back(ends[1]);
  }
  return both;
}

struct Sent {
  std::vector<std::size_t> numbers;
  std::vector<std::byte> memory;
};

/// What the receiver finds where `change` has changed what is sent.
Findings found(KvLayout layout, const std::function<void(Sent&)>& change) {
  const auto blocks = kv_blocks(kShape, layout, kStreams, 1);
  Sent sent{.numbers = std::vector<std::size_t>(blocks.size()), .memory = std::vector<std::byte>(kShape.bytes())};
  std::iota(sent.numbers.begin(), sent.numbers.end(), 0);
  fill_blocks(blocks, kKey, sent.memory);
  change(sent);
  const auto streams = connected();
  auto sending = std::async(std::launch::async,
                            [&] { send_blocks(streams.first, blocks, sent.numbers, kKey, sent.memory, kNoWatch); });
  std::vector<std::byte> memory(kShape.bytes());
  const auto taken = receive_blocks(streams.second, blocks, kKey, memory, kNoWatch);
  sending.get();
  EXPECT_GE(taken.all_s, std::min(taken.first_s, taken.all_s));
  return check_blocks(kShape, layout, blocks, kKey, taken, memory, "transfer 2");
}

void expect_named(const Findings& findings, const std::string& words) {
  ASSERT_EQ(findings.count, 1U);
  EXPECT_EQ(findings.words.at(0), words);
}

TEST(KvBlocks, cover_the_memory_of_both_sides_once_in_another_order) {
  for (const KvLayout layout : {KvLayout::layer, KvLayout::page, KvLayout::contiguous}) {
    const auto blocks = kv_blocks(kShape, layout, kStreams, 1);
    std::size_t sum = 0;
    std::set<std::size_t> from, to;
    for (const auto& block : blocks) {
      sum += block.size;
      from.insert(block.from);
      to.insert(block.to);
    }
    EXPECT_EQ(sum, kShape.bytes());
    EXPECT_EQ(from.size(), blocks.size());
    EXPECT_EQ(to, from);
  }
  EXPECT_EQ(kv_blocks(kShape, KvLayout::layer, kStreams, 1).size(), 12U);  // 3 layers of 4 pages
  EXPECT_EQ(kv_blocks(kShape, KvLayout::layer, kStreams, 1)[0].size, 16 * 2 * 32 * 2U);
}

TEST(KvBlocks, arrive_right_in_every_layout) {
  for (const KvLayout layout : {KvLayout::layer, KvLayout::page, KvLayout::contiguous})
    EXPECT_EQ(found(layout, [](Sent&) {}).count, 0U);
}

TEST(KvBlocks, that_are_lost_are_named) {
  expect_named(found(KvLayout::layer, [](Sent& sent) { sent.numbers.erase(sent.numbers.begin() + 5); }),
               "transfer 2: layer 1 of page 1 was lost");
  expect_named(found(KvLayout::page, [](Sent& sent) { sent.numbers.pop_back(); }), "transfer 2: page 3 was lost");
}

TEST(KvBlocks, that_come_twice_are_named) {
  expect_named(found(KvLayout::layer, [](Sent& sent) { sent.numbers.push_back(11); }),
               "transfer 2: layer 2 of page 3 came 2 times");
}

TEST(KvBlocks, with_one_turned_bit_are_named) {
  const auto blocks = kv_blocks(kShape, KvLayout::layer, kStreams, 1);
  expect_named(found(KvLayout::layer, [&](Sent& sent) { sent.memory[blocks[4].from + 100] ^= std::byte{2}; }),
               "transfer 2: layer 1 of page 0 has 1 wrong bytes");
}

TEST(KvBlocks, of_an_earlier_transfer_do_not_pass) {
  const auto findings = found(KvLayout::page, [](Sent& sent) {
    fill_blocks(kv_blocks(kShape, KvLayout::page, kStreams, 1), {.nonce = kKey.nonce, .transfer = 1}, sent.memory);
  });
  EXPECT_EQ(findings.count, 4U);
}

TEST(KvBlocks, from_the_place_of_another_do_not_pass) {
  const auto blocks = kv_blocks(kShape, KvLayout::page, kStreams, 1);
  const auto findings = found(KvLayout::page, [&](Sent& sent) {
    std::swap_ranges(sent.memory.begin() + static_cast<std::ptrdiff_t>(blocks[0].from),
                     sent.memory.begin() + static_cast<std::ptrdiff_t>(blocks[0].from + 64),
                     sent.memory.begin() + static_cast<std::ptrdiff_t>(blocks[1].from));
  });
  EXPECT_EQ(findings.count, 2U);
}

TEST(KvBlocks, for_which_the_receiver_did_not_ask_are_not_sent) {
  const auto blocks = kv_blocks(kShape, KvLayout::page, kStreams, 1);
  const auto streams = connected();
  std::vector<std::byte> memory(kShape.bytes());
  std::vector<std::byte> other(8, std::byte{1});
  const std::atomic<bool> over = false;
  for (const auto& stream : streams.second) host::send_all(stream.number(), other, over);
  EXPECT_THROW(send_blocks(streams.first, blocks, {0}, kKey, memory, kNoWatch), std::runtime_error);
}

const std::vector<std::string_view> kMetrics = {"forward_time",         "forward_first_block",  "forward_contiguous",
                                                "forward_paging_cost",  "forward_bandwidth",    "forward_link_share",
                                                "backward_time",        "backward_first_block", "backward_contiguous",
                                                "backward_paging_cost", "backward_bandwidth",   "backward_link_share",
                                                "loopback_time",        "loopback_first_block", "loopback_contiguous",
                                                "loopback_paging_cost", "loopback_bandwidth",   "mismatches"};

KvOutcome outcome() {
  const KvTimes times{.first = {0.1}, .all = {0.5}, .contiguous = {0.25}};
  return {.forward = times, .backward = times, .findings = {}};
}
Recorded lines(bool fabric, const KvOutcome& all) {
  return recorded(kMetrics, [&](Recorder& record) {
    record_transfers({.shape = kShape}, fabric, all, BytesPerSecond{1e6}, {.kind = "pair", .id = "n1+n2"}, record);
  });
}

TEST(KvRecord, of_a_fabric_has_bandwidth_cost_of_pages_and_share_of_the_link) {
  const auto all = lines(true, outcome());
  const auto bytes = static_cast<double>(kShape.bytes());
  EXPECT_EQ(all.at({"backward_bandwidth", ""}), std::vector<double>{bytes / 0.5});
  EXPECT_EQ(all.at({"forward_paging_cost", ""}), std::vector<double>{2});
  EXPECT_EQ(all.at({"forward_link_share", ""}), std::vector<double>{bytes / 0.5 / 1e6});
}

TEST(KvRecord, of_loopback_has_no_figure_of_a_fabric) {
  for (const auto& [key, samples] : lines(false, outcome()))
    EXPECT_TRUE(key.first.starts_with("loopback_") || key.first == "mismatches") << key.first;
}

TEST(KvRecord, with_a_wrong_block_has_no_bandwidth) {
  auto wrong = outcome();
  wrong.findings.add("layer 1 of page 2 was lost");
  const auto all = lines(true, wrong);
  EXPECT_FALSE(all.contains({"forward_bandwidth", ""}));
  EXPECT_FALSE(all.contains({"backward_link_share", ""}));
  EXPECT_EQ(all.at({"mismatches", ""}), std::vector<double>{1});
}

}  // namespace
}  // namespace assay::inference::kv_blocks_test
