// kv_blocks: a head before each block says which it is and how long; a receiver writes where its own page table says.
#include "workloads/inference/kv_blocks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/collective/pattern.h"
#include "probes/host/slice.h"
#include "workloads/inference/page_table.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/payload.h"

namespace assay::inference {
namespace {

using Clock = std::chrono::steady_clock;

struct BlockHead {
  std::uint64_t number = 0, proof = 0, size = 0;
};
constexpr std::uint64_t kEnd = UINT64_MAX;    // the number that no block has
constexpr std::size_t kPassedOver = 1 << 16;  // B of skipped data, at a time
constexpr std::size_t kWord = sizeof(std::uint64_t);

BlockHead head_of(const KvKey& key, std::uint64_t number, std::size_t size) {
  return {
      .number = number, .proof = collective::mixed(collective::mixed(key.nonce, key.transfer), number), .size = size};
}

cluster_storage::PayloadKey payload_of(const KvKey& key, std::size_t number) {
  return {.rank = number, .step = key.transfer, .nonce = key.nonce};
}

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// One stream of a receiver.
class Taking {
 public:
  Taking(int socket, const std::vector<KvBlock>& blocks, const KvKey& key, std::span<std::byte> memory,
         std::vector<std::atomic<std::uint32_t>>& seen, const std::atomic<bool>& over)
      : socket_(socket), blocks_(blocks), key_(key), memory_(memory), seen_(seen), over_(over) {}

  void run(Clock::time_point begin) {
    while (true) {
      BlockHead head;
      host::receive_all(socket_, std::as_writable_bytes(std::span(&head, 1)), over_, counted_);
      if (head.number == kEnd) {
        if (head.proof != head_of(key_, kEnd, 0).proof) ++strange_;
        all_s_ = std::chrono::duration<double>(Clock::now() - begin).count();
        return;
      }
      take(head);
      if (!first_s_) first_s_ = std::chrono::duration<double>(Clock::now() - begin).count();
    }
  }
  [[nodiscard]] std::uint64_t strange() const { return strange_; }
  [[nodiscard]] std::optional<double> first_s() const { return first_s_; }
  [[nodiscard]] double all_s() const { return all_s_; }

 private:
  void take(const BlockHead& head) {
    const bool known = head.number < blocks_.size() && head.proof == head_of(key_, head.number, 0).proof &&
                       head.size == blocks_[head.number].size;
    if (!known) {
      ++strange_;
      if (head.size > memory_.size())
        throw std::runtime_error("a head that no block has states a size that none can have");
      return pass_over(head.size);
    }
    if (seen_[head.number]++ > 0) return pass_over(head.size);
    const KvBlock& block = blocks_[head.number];
    host::receive_all(socket_, memory_.subspan(block.to, block.size), over_, counted_);
  }
  void pass_over(std::size_t size) {
    std::vector<std::byte> room(std::min(size, kPassedOver));
    for (std::size_t left = size; left > 0;) {
      const auto part = std::span(room).first(std::min(left, room.size()));
      host::receive_all(socket_, part, over_, counted_);
      left -= part.size();
    }
  }

  int socket_;
  const std::vector<KvBlock>& blocks_;
  KvKey key_;
  std::span<std::byte> memory_;
  std::vector<std::atomic<std::uint32_t>>& seen_;
  const std::atomic<bool>& over_;
  std::atomic<std::uint64_t> counted_ = 0;
  std::uint64_t strange_ = 0;
  std::optional<double> first_s_;
  double all_s_ = 0;
};

}  // namespace

std::vector<KvBlock> kv_blocks(const KvShape& shape, KvLayout layout, std::size_t streams, std::uint64_t seed) {
  std::vector<KvBlock> blocks;
  if (layout == KvLayout::contiguous) {
    for (std::size_t i = 0; i < streams; ++i) {
      const host::Slice part = host::slice(shape.bytes(), streams, i, kWord);
      if (part.end > part.begin)
        blocks.push_back({.from = part.begin, .to = part.begin, .size = part.end - part.begin});
    }
    return blocks;
  }
  const std::size_t pages = train::sized(shape.tokens / shape.page), layers = train::sized(shape.model.layers);
  const auto from = page_table<std::size_t>(pages, collective::mixed(seed, 0)),
             to = page_table<std::size_t>(pages, collective::mixed(seed, 1));
  const std::size_t size = shape.bytes() / pages / layers;  // of a page of one layer
  if (layout == KvLayout::page) {
    for (std::size_t page = 0; page < pages; ++page)
      blocks.push_back({.from = from[page] * layers * size, .to = to[page] * layers * size, .size = layers * size});
    return blocks;
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (std::size_t page = 0; page < pages; ++page)
      blocks.push_back(
          {.from = (layer * pages + from[page]) * size, .to = (layer * pages + to[page]) * size, .size = size});
  }
  return blocks;
}

std::string block_name(const KvShape& shape, KvLayout layout, std::size_t number) {
  const std::size_t pages = train::sized(shape.tokens / shape.page);
  if (layout == KvLayout::contiguous) return fmt::format("part {}", number);
  if (layout == KvLayout::page) return fmt::format("page {}", number);
  return fmt::format("layer {} of page {}", number / pages, number % pages);
}

void fill_blocks(const std::vector<KvBlock>& blocks, const KvKey& key, std::span<std::byte> memory) {
  for (std::size_t i = 0; i < blocks.size(); ++i)
    cluster_storage::fill_payload(payload_of(key, i), 0, memory.subspan(blocks[i].from, blocks[i].size));
}

void send_blocks(const host::Streams& streams, const std::vector<KvBlock>& blocks,
                 const std::vector<std::size_t>& numbers, const KvKey& key, std::span<const std::byte> memory,
                 const std::function<void()>& watch) {
  std::atomic<bool> over = false;
  cluster_storage::run_concurrently(
      streams.size(),
      [&](std::size_t stream) {
        const int socket = streams[stream].number();
        std::uint64_t asked = 0;
        std::atomic<std::uint64_t> counted = 0;
        host::receive_all(socket, std::as_writable_bytes(std::span(&asked, 1)), over, counted);
        if (asked != head_of(key, kEnd, 0).proof) throw std::runtime_error("the receiver asked for another transfer");
        for (std::size_t i = stream; i < numbers.size(); i += streams.size()) {
          const KvBlock& block = blocks[numbers[i]];
          host::send_all(socket, bytes_of(head_of(key, numbers[i], block.size)), over, true);
          host::send_all(socket, memory.subspan(block.from, block.size), over);
        }
        host::send_all(socket, bytes_of(head_of(key, kEnd, 0)), over);
      },
      watch, over);
}

KvTaken receive_blocks(const host::Streams& streams, const std::vector<KvBlock>& blocks, const KvKey& key,
                       std::span<std::byte> memory, const std::function<void()>& watch) {
  std::atomic<bool> over = false;
  std::vector<std::atomic<std::uint32_t>> seen(blocks.size());
  std::vector<std::unique_ptr<Taking>> takings;
  for (const auto& stream : streams)
    takings.push_back(std::make_unique<Taking>(stream.number(), blocks, key, memory, seen, over));
  const std::uint64_t ask = head_of(key, kEnd, 0).proof;
  const auto begin = Clock::now();
  for (const auto& stream : streams) host::send_all(stream.number(), bytes_of(ask), over);
  cluster_storage::run_concurrently(
      streams.size(), [&](std::size_t stream) { takings[stream]->run(begin); }, watch, over);
  KvTaken taken{.first_s = std::numeric_limits<double>::infinity()};
  for (const auto& one : takings) {
    taken.strange += one->strange();
    taken.all_s = std::max(taken.all_s, one->all_s());
    taken.first_s = std::min(taken.first_s, one->first_s().value_or(taken.first_s));
  }
  for (const auto& count : seen) taken.seen.push_back(count);
  return taken;
}

Findings check_blocks(const KvShape& shape, KvLayout layout, const std::vector<KvBlock>& blocks, const KvKey& key,
                      const KvTaken& taken, std::span<const std::byte> memory, const std::string& title) {
  Findings findings;
  for (std::uint64_t i = 0; i < taken.strange; ++i)
    findings.add(fmt::format("{}: something came with a head that no block of it has", title));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto name = [&] { return fmt::format("{}: {}", title, block_name(shape, layout, i)); };
    if (taken.seen[i] == 0) {
      findings.add(name() + " was lost");
      continue;
    }
    if (taken.seen[i] > 1) findings.add(fmt::format("{} came {} times", name(), taken.seen[i]));
    if (const auto wrong =
            cluster_storage::payload_mismatches(payload_of(key, i), 0, memory.subspan(blocks[i].to, blocks[i].size)))
      findings.add(fmt::format("{} has {} wrong bytes", name(), wrong));
  }
  return findings;
}

}  // namespace assay::inference
