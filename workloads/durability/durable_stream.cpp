// durable_stream: a write that fails is made again from the start, since a failed fsync leaves nothing to rely on.
#include "workloads/durability/durable_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/storage_file.h"

namespace assay::durability {
namespace {

constexpr std::array<char, 8> kMark = {'d', 'u', 'r', 'a', 'b', 'l', 'e', '1'};
constexpr std::size_t kHeader = kMark.size() + sizeof(std::uint64_t);
constexpr unsigned kIndexBits = 24, kStreamBits = 8, kItemBits = 34;
static_assert(kMostItems == 1U << kIndexBits && kMostStreams == 1U << kStreamBits);

cluster_storage::PayloadKey key_of(const DurableWrite& write) {
  return {.rank = write.writer << kItemBits | packed(write.item), .step = write.generation, .nonce = write.nonce};
}

constexpr auto kAskAgain = std::chrono::milliseconds(50);

bool is_there(const std::string& folder) { return std::filesystem::exists(folder + "/owner"); }

/// The content; empty if there is no file in a folder that is there. A storage may be mounted anew between two calls:
/// only a file that is missing while the folder was there before and after is gone.
std::vector<std::byte> content_of(const std::string& path, const std::string& folder, Seconds patience) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience.count);
  while (true) {
    std::string why = folder + " is not there";
    try {
      const bool was_there = is_there(folder);
      if (auto found = cluster_storage::content_on_storage(path)) return *found;
      if (was_there && is_there(folder)) return {};
    } catch (const std::system_error& refused) {
      why = refused.what();
    }
    if (stop_requested()) throw std::runtime_error("stopped by a signal");
    if (std::chrono::steady_clock::now() > until)
      throw std::runtime_error(fmt::format("cannot be read again within {:g} s: {}", patience.count, why));
    std::this_thread::sleep_for(kAskAgain);
  }
}

std::span<const std::byte> block_at(const std::vector<std::byte>& file, std::uint64_t index) {
  const std::size_t begin = std::min<std::size_t>(index * kDurableBlock, file.size());
  return std::span(file).subspan(begin, std::min(kDurableBlock, file.size() - begin));
}

std::string found_words(BlockState state, std::span<const std::byte> found) {
  if (state == BlockState::lost) return found.empty() ? "nothing is there" : "zeros are there";
  if (state == BlockState::rolled_back) return fmt::format("write {} is there", *generation_in(found));
  return "what is there no write made";
}

void judge(const DurableWrite& write, std::span<const std::byte> found, DurableTally& tally) {
  const BlockState state = state_of(write, found);
  ++tally.acknowledged;
  if (state == BlockState::right) return;
  ++(state == BlockState::lost ? tally.lost : state == BlockState::rolled_back ? tally.rolled_back : tally.torn);
  if (!tally.first_bad.empty()) return;
  tally.first_bad = fmt::format("write {} of stream {} to place {} was acknowledged, and {}", write.generation,
                                write.item.stream, write.item.index, found_words(state, found));
}

using Clock = std::chrono::steady_clock;

constexpr auto kTryAgain = std::chrono::milliseconds(50);
constexpr std::uint64_t kOperations = words_of(DurableOperation{}).size();

double passed_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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

std::string slots_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream) {
  return fmt::format("{}/durable-{}-{}-slots", folder, writer, stream);
}

std::string log_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream) {
  return fmt::format("{}/durable-{}-{}-log", folder, writer, stream);
}

std::string name_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream, std::uint32_t index) {
  return fmt::format("{}/durable-{}-{}-name-{}", folder, writer, stream, index);
}

void DurableTally::add(const DurableTally& other) {
  acknowledged += other.acknowledged;
  lost += other.lost;
  rolled_back += other.rolled_back;
  torn += other.torn;
  if (first_bad.empty()) first_bad = other.first_bad;
}

void check_ledger(const Ledger& ledger, const std::string& folder, const DurableWrite& writer, Seconds patience,
                  std::map<DurableOperation, DurableTally>& tallies) {
  std::map<std::string, std::vector<std::byte>> files;
  const auto file = [&](const std::string& path) -> const std::vector<std::byte>& {
    const auto known = files.find(path);
    return known != files.end() ? known->second : files.emplace(path, content_of(path, folder, patience)).first->second;
  };
  for (const auto& [item, generation] : ledger) {
    DurableWrite write = writer;
    write.item = item;
    write.generation = generation;
    if (item.operation == DurableOperation::rename) {
      judge(write, content_of(name_path(folder, writer.writer, item.stream, item.index), folder, patience),
            tallies[item.operation]);
      continue;
    }
    const bool log = item.operation == DurableOperation::append;
    const auto& content = file((log ? log_path : slots_path)(folder, writer.writer, item.stream));
    judge(write, block_at(content, item.index), tallies[item.operation]);
  }
}

DurableItem DurableStream::item_of(std::uint64_t generation) const {
  const std::uint64_t turn = generation / kOperations;
  const auto at = [&](DurableOperation operation, std::uint64_t index) {
    return DurableItem{.operation = operation, .stream = stream_, .index = static_cast<std::uint32_t>(index)};
  };
  if (generation % kOperations == 1 && records_ < kMostRecords) return at(DurableOperation::append, records_);
  if (generation % kOperations == 2) return at(DurableOperation::rename, turn % kDurableNames);
  return at(DurableOperation::overwrite, turn % settings_.slots);
}

void DurableStream::overwrite(const DurableItem& item) {
  const std::string path = slots_path(settings_.folder, writer_, stream_);
  if (!slots_) {
    slots_ = cluster_storage::open_on_storage(path, O_WRONLY | O_CREAT);
    cluster_storage::resize_on_storage(slots_, std::uint64_t{settings_.slots} * kDurableBlock, path);
    cluster_storage::sync_directory(settings_.folder);
  }
  cluster_storage::write_on_storage(slots_, block_, std::uint64_t{item.index} * kDurableBlock, path);
  cluster_storage::sync_on_storage(slots_, path);
}

void DurableStream::append(const DurableItem& item) {
  const std::string path = log_path(settings_.folder, writer_, stream_);
  if (!log_) {  // the remains of a failed append are cut off
    log_ = cluster_storage::open_on_storage(path, O_WRONLY | O_CREAT | O_APPEND);
    cluster_storage::resize_on_storage(log_, std::uint64_t{item.index} * kDurableBlock, path);
    cluster_storage::sync_directory(settings_.folder);
  }
  cluster_storage::write_on_storage(log_, block_, 0, path);
  cluster_storage::sync_on_storage(log_, path);
}

void DurableStream::replace(const DurableItem& item) {
  const std::string path = name_path(settings_.folder, writer_, stream_, item.index);
  cluster_storage::write_durably(path + ".tmp", O_CREAT | O_TRUNC, block_);
  cluster_storage::rename_on_storage(path + ".tmp", path);
  cluster_storage::sync_directory(settings_.folder);
}

void DurableStream::write_once(const DurableItem& item) {
  if (item.operation == DurableOperation::overwrite) return overwrite(item);
  if (item.operation == DurableOperation::append) return append(item);
  replace(item);
}

void DurableStream::write_durable(const DurableItem& item, const std::atomic<bool>& abandoned, StreamOutcome& outcome) {
  const auto begin = Clock::now();
  bool refused = false;
  while (true) {
    try {
      write_once(item);
      break;
    } catch (const std::system_error& why) {
      if (outcome.refused++ == 0) outcome.first_refusal = why.what();
      if (passed_since(begin) > settings_.recovery.count)
        throw std::runtime_error(fmt::format("the storage refuses for more than {:g} s what it took before: {}",
                                             settings_.recovery.count, why.what()));
    }
    if (abandoned || stop_requested()) throw std::runtime_error("stopped while the storage refused");
    refused = true;
    slots_ = Descriptor();
    log_ = Descriptor();
    std::this_thread::sleep_for(kTryAgain);
  }
  const double took_s = passed_since(begin);
  outcome.longest_s = std::max(outcome.longest_s, took_s);
  if (refused || took_s > settings_.stall.count) outcome.recovery_s = took_s;
}

StreamOutcome DurableStream::run(const Acknowledge& acknowledge, const std::atomic<bool>& abandoned) {
  StreamOutcome outcome;
  const auto begin = Clock::now();
  for (std::uint64_t generation = 1; !outcome.recovery_s && passed_since(begin) < settings_.duration.count;
       ++generation) {
    if (abandoned || stop_requested()) throw std::runtime_error("stopped by a signal or with the group");
    const DurableItem item = item_of(generation);
    make_block({.nonce = settings_.nonce, .writer = writer_, .item = item, .generation = generation}, block_);
    write_durable(item, abandoned, outcome);
    if (item.operation == DurableOperation::append) ++records_;
    acknowledge(item, generation);
  }
  return outcome;
}

}  // namespace assay::durability
