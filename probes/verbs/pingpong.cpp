// pingpong: posts a message, polls for the answer, takes the time.
#include "probes/verbs/pingpong.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/statistics.h"

namespace assay::verbs {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kPollsPerClock =
    4096;  // looks at memory or queue between two looks at the clock: some tens of microseconds

/// The byte that the adapter writes. A plain load could be kept in a register.
std::uint8_t look_at(std::byte* place) {
  return static_cast<std::uint8_t>(std::atomic_ref<std::byte>(*place).load(std::memory_order_acquire));
}

/// Counts looks and ends the wait at its deadline.
class Patience {
 public:
  explicit Patience(Seconds limit) : limit_(limit) {}
  /// True once in a while, when something slow may be done; throws when the time is over.
  bool look() {
    if (++looks_ % kPollsPerClock != 0) return false;
    const auto now = Clock::now();
    if (looks_ == kPollsPerClock) begin_ = now;
    if (std::chrono::duration<double>(now - begin_).count() > limit_.count) {
      throw std::runtime_error(fmt::format("a message did not arrive within {:g} s", limit_.count));
    }
    return true;
  }

 private:
  Seconds limit_;
  std::uint64_t looks_ = 0;
  Clock::time_point begin_;
};

}  // namespace

PingPong::PingPong(VerbsEndpoint& endpoint, const RegisteredMemory& memory, const AreaLayout& layout, Bytes size,
                   VerbsOperation operation, Seconds stall)
    : endpoint_(endpoint), operation_(operation), stall_(stall) {
  const bool reads = operation == VerbsOperation::read;
  const auto bytes = static_cast<std::uint32_t>(size.count);
  message_ = {
      .here = reads ? layout.target : layout.source, .there = reads ? layout.source : layout.target, .size = bytes};
  room_ = {.here = layout.target, .there = 0, .size = bytes};
  if (!memory.bytes().empty()) {
    source_last_ = memory.bytes().data() + layout.source + size.count - 1;
    target_last_ = memory.bytes().data() + layout.target + size.count - 1;
  } else if (operation == VerbsOperation::write) {
    throw std::logic_error("a write into memory that cannot be seen is never seen to arrive");
  }
  if (!reads && target_last_ != nullptr) *target_last_ = std::byte{0};
  if (operation == VerbsOperation::send) endpoint_.post_receives(0, std::vector<Transfer>(kReceives, room_));
}

void PingPong::throw_message() {
  if (operation_ != VerbsOperation::read && source_last_ != nullptr) *source_last_ = static_cast<std::byte>(++thrown_);
  endpoint_.post(operation_, 0, {&message_, 1});
  ++posted_;
}

void PingPong::await_message() {
  if (operation_ == VerbsOperation::write)
    await_memory();
  else
    await_receive();
}

void PingPong::await_memory() {
  const auto awaited = static_cast<std::uint8_t>(caught_ + 1);
  Patience patience(stall_);
  while (look_at(target_last_) != awaited) {
    if (patience.look()) reclaim();  // a message that failed is known by its completion only
  }
  caught_ = awaited;
}

void PingPong::await_receive() {
  std::array<Completed, 1> taken;
  Patience patience(stall_);
  while (endpoint_.poll_receives(taken) == 0) {
    if (patience.look()) reclaim();
  }
  const auto awaited = static_cast<std::uint8_t>(caught_ + 1);
  if (target_last_ != nullptr && look_at(target_last_) != awaited)
    throw std::runtime_error("a message arrived out of turn");
  caught_ = awaited;
  endpoint_.post_receives(0, {&room_, 1});
}

void PingPong::reclaim() { posted_ -= static_cast<std::uint32_t>(endpoint_.poll_sends(taken_)); }

std::vector<double> PingPong::lead(std::size_t count) {
  std::vector<double> times;
  times.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    throw_message();
    if (operation_ == VerbsOperation::read) {
      Patience patience(stall_);
      while (posted_ > 0) {
        reclaim();
        (void)patience.look();  // it throws at the deadline
      }
    } else {
      await_message();
    }
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (operation_ != VerbsOperation::read) reclaim();  // outside of the time
  }
  return times;
}

void PingPong::follow(std::size_t count) {
  if (operation_ == VerbsOperation::read) return;
  for (std::size_t i = 0; i < count; ++i) {
    await_message();
    throw_message();
    Patience patience(stall_);
    reclaim();
    while (posted_ > kSends / 2) {
      reclaim();
      (void)patience.look();  // it throws at the deadline
    }
  }
}

LatencySummary summary_of(const std::vector<double>& samples) {
  return {.p50 = percentile(samples, 0.5),
          .p99 = percentile(samples, 0.99),
          .p999 = percentile(samples, 0.999),
          .largest = std::ranges::max(samples)};
}

}  // namespace assay::verbs
