// durable_stream: a write that fails is made again from the start, since a failed fsync leaves nothing to rely on.
#include "workloads/durability/durable_stream.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/storage_file.h"

namespace assay::durability {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTryAgain = std::chrono::milliseconds(50);
constexpr std::uint64_t kOperations = words_of(DurableOperation{}).size();

double passed_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

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
