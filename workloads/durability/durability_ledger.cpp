// durability_ledger: each file is read once and whole, then every block of it that was acknowledged is compared.
#include "workloads/durability/durability_ledger.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "workloads/storage/shared/storage_file.h"

namespace assay::durability {
namespace {

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

}  // namespace

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

}  // namespace assay::durability
