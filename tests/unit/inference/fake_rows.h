// fake_rows: a device whose memory and arithmetic are this process', and messages between threads: what an exchange
// asks of a GPU and of NCCL, without either. Nothing here says anything about a GPU.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "workloads/inference/device_exchange.h"

namespace assay::inference {

/// Rows by the lines that kernels run, in three lanes. Time passes by work alone: 1 s each.
class FakeRows {
 public:
  double now_s = 0;
  std::uint64_t taken = 0;  ///< B

  std::byte* take(std::uint64_t bytes) {
    taken += bytes;
    auto& room = rooms_.emplace_back(bytes / kWordBytes + 1, kGarbage);
    return reinterpret_cast<std::byte*>(room.data());
  }
  static void put(void* to, std::span<const std::byte> bytes) { std::memcpy(to, bytes.data(), bytes.size()); }
  static void get(std::span<std::byte> bytes, const void* from) { std::memcpy(bytes.data(), from, bytes.size()); }
  static void overwrite(void* memory, std::uint64_t bytes) { std::memset(memory, 0xff, bytes); }
  static void clear(void* memory, std::uint64_t bytes) { std::memset(memory, 0, bytes); }
  void run(RowWork work, const RowView& view, std::uint64_t rows) {
    with_row_work(work, [&]<RowWork kind>() {
      for (std::uint64_t row = 0; row < rows; ++row) {
        std::uint32_t faults = 0;
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
          faults |= run_row<kind>(view, row, lane, kLanes, [](auto& number) { ++number; });
        if (faults != 0)
          report_row(
              kind, view, row, faults, [](auto& number) { ++number; },
              [](auto& number, auto to) { number = std::max(number, to); });
      }
    });
    now_s += 1;
  }
  void mark(std::size_t mark) { marks_[mark] = now_s; }
  double seconds(std::size_t from, std::size_t to) const { return marks_.at(to) - marks_.at(from); }
  void close() {
    if (closed_) throw std::logic_error("the gate is closed twice");
    closed_ = true;
  }
  void open() { closed_ = false; }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  static constexpr std::uint32_t kLanes = 3;
  static constexpr std::uint64_t kWordBytes = 8, kGarbage = 0xee11ee22ee33ee44;
  std::deque<std::vector<std::uint64_t>> rooms_;
  std::map<std::size_t, double> marks_;
  bool closed_ = false;
};

/// A message that is about to arrive, for tests that change it: `number` counts the groups of its sender.
struct Message {
  std::size_t from = 0, to = 0, number = 0;
  std::vector<std::byte> bytes = {};
  std::uint64_t at = 0;  ///< where the sender says that it lands
  bool lost = false;     ///< the receiver waits for it no longer, and its memory stays as it is
};

/// Where the threads of all ranks meet. A wait ends after a minute: a rank has failed, then.
class FakeNetwork {
 public:
  FakeNetwork(std::size_t ranks, std::function<void(Message&)> change) : ranks_(ranks), change_(std::move(change)) {}

  std::uint64_t sent_bytes = 0;  ///< of all ranks

  void send(Message message) {
    const std::lock_guard lock(mutex_);
    if (message.from != message.to) sent_bytes += message.bytes.size();
    if (change_) change_(message);
    messages_[{message.from, message.to}].push_back(std::move(message));
    changed_.notify_all();
  }
  Message receive(std::size_t from, std::size_t to) {
    std::unique_lock lock(mutex_);
    auto& waiting = messages_[{from, to}];
    if (!changed_.wait_for(lock, kPatience, [&] { return !waiting.empty(); }))
      throw std::runtime_error("no message came");
    Message message = std::move(waiting.front());
    waiting.pop_front();
    return message;
  }
  /// Memory of `rank` that others put parts into, in the order in which it is made known.
  void lands(std::size_t rank, std::uint64_t* memory) {
    const std::lock_guard lock(mutex_);
    landings_[rank].push_back(memory);
  }
  /// The memory of `rank` that is what `own` is of `other`.
  std::byte* landing(std::size_t rank, std::size_t other, const std::uint64_t* own) {
    const std::lock_guard lock(mutex_);
    const auto& known = landings_.at(other);
    return reinterpret_cast<std::byte*>(
        landings_.at(rank).at(static_cast<std::size_t>(std::ranges::find(known, own) - known.begin())));
  }
  void raise(std::size_t rank, std::size_t from, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    counts_[{from, rank}] = count;
    changed_.notify_all();
  }
  void await(std::size_t rank, std::size_t from, std::uint64_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return counts_[{from, rank}] >= count; }))
      throw std::runtime_error("no count came");
  }
  void meet() {
    std::unique_lock lock(mutex_);
    const std::size_t meeting = came_++ / ranks_;
    changed_.notify_all();
    if (!changed_.wait_for(lock, kPatience, [&] { return came_ >= (meeting + 1) * ranks_; }))
      throw std::runtime_error("a rank did not come");
  }

 private:
  static constexpr std::chrono::seconds kPatience{60};
  std::size_t ranks_;
  std::function<void(Message&)> change_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Message>> messages_;
  std::map<std::size_t, std::vector<std::uint64_t*>> landings_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> counts_;
  std::size_t came_ = 0;
};

/// The messages of one rank; a group takes 10 s of its device's time, a meeting 100 s.
class FakeWire {
 public:
  FakeWire(FakeNetwork& network, std::size_t /*ranks*/, std::size_t rank, FakeRows& device)
      : network_(network), rank_(rank), device_(device) {}

  static void lands(std::uint64_t* /*memory*/, std::uint64_t /*bytes*/) {}
  void exchange(const std::uint64_t* sent, std::span<const collective::Part> to, std::uint64_t* received,
                std::span<const collective::Part> from, const Landing& landing) {
    const auto* const out = reinterpret_cast<const std::byte*>(sent);
    auto* const in = reinterpret_cast<std::byte*>(received);
    for (std::size_t peer = 0; peer < to.size(); ++peer) {
      if (to[peer].bytes == 0) continue;
      if (to[peer].offset % 8 != 0) throw std::logic_error("a message does not begin with a word");
      const auto* const begin = out + to[peer].offset;
      network_.send({.from = rank_,
                     .to = peer,
                     .number = number_,
                     .bytes = {begin, begin + to[peer].bytes},
                     .at = landing.at[peer]});
    }
    for (std::size_t peer = 0; peer < from.size(); ++peer) {
      if (from[peer].bytes == 0) continue;
      const Message message = network_.receive(peer, rank_);
      if (message.lost) continue;
      if (message.at != from[peer].offset) throw std::logic_error("a message lands at another place");
      if (message.bytes.size() != from[peer].bytes) throw std::runtime_error("a message has another size");
      std::ranges::copy(message.bytes, in + from[peer].offset);
    }
    ++number_;
    device_.now_s += 10;
  }
  void barrier() {
    network_.meet();
    device_.now_s += 100;
  }
  void finish() const {
    if (device_.closed()) throw std::logic_error("what is behind a closed gate is waited for");
  }

 private:
  FakeNetwork& network_;
  std::size_t rank_, number_ = 0;
  FakeRows& device_;
};

/// Parts are put into the memory of other ranks at once; counts say that they are there, and nothing else orders them.
class FakePuts {
 public:
  FakePuts(FakeNetwork& network, std::size_t ranks, std::size_t rank, FakeRows& device)
      : network_(network), rank_(rank), device_(device), counts_(ranks, rank) {}

  void lands(std::uint64_t* memory, std::uint64_t /*bytes*/) { network_.lands(rank_, memory); }
  void exchange(const std::uint64_t* sent, std::span<const collective::Part> to, std::uint64_t* received,
                std::span<const collective::Part> from, const Landing& landing) {
    const PutPlan puts = counts_.puts(to, landing);
    const SignalPlan signals = counts_.signals(to, from, landing);
    for (std::size_t peer = 0; peer < to.size(); ++peer) {
      if (puts.bytes[peer] == 0) continue;
      std::memcpy(network_.landing(peer, rank_, received) + puts.at[peer],
                  reinterpret_cast<const std::byte*>(sent) + puts.from[peer], puts.bytes[peer]);
    }
    for (std::size_t peer = 0; peer < to.size(); ++peer)
      if (signals.raise[peer] != 0) network_.raise(peer, rank_, signals.raise[peer]);
    for (std::size_t peer = 0; peer < to.size(); ++peer)
      if (signals.await[peer] != 0) network_.await(rank_, peer, signals.await[peer]);
    device_.now_s += 10;
  }
  void barrier() { network_.meet(); }
  static void finish() {}

 private:
  FakeNetwork& network_;
  std::size_t rank_;
  FakeRows& device_;
  PutCounts counts_;
};

using FakeExchange = DeviceExchange<FakeRows, FakeWire>;

/// Calls `work` on every rank of `job`, each a thread. Returns what all ranks sent, in B. Throws what one of them
/// threw.
template <class Wire = FakeWire>
std::uint64_t on_fake_ranks(
    const ExchangeJob& job,
    const std::type_identity_t<std::function<void(std::size_t, DeviceExchange<FakeRows, Wire>&)>>& work,
    const std::function<void(Message&)>& change = {}) {
  const std::size_t ranks = train::sized(job.routing.ranks);
  FakeNetwork network(ranks, change);
  std::vector<std::exception_ptr> failures(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          ExchangeJob mine = job;
          mine.rank = static_cast<std::int64_t>(rank);
          FakeRows device;
          Wire wire(network, ranks, rank, device);
          DeviceExchange<FakeRows, Wire> exchange(mine, device, wire);
          if (device.taken > RowRooms(mine).all()) throw std::logic_error("more memory is taken than was said");
          work(rank, exchange);
        } catch (...) {  // thrown on below
          failures[rank] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return network.sent_bytes;
}

}  // namespace assay::inference
