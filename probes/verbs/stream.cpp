// stream: posts messages, polls completions, counts bytes.
#include "probes/verbs/stream.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace assay::verbs {
namespace {

constexpr std::size_t kTaken = 32;             // completions taken at a time
constexpr std::uint32_t kLooksPerClock = 256;  // empty polls between two looks at the clock
constexpr std::size_t kWord = sizeof(std::uint64_t);

double since(Stream::Clock::time_point begin) {
  return std::chrono::duration<double>(Stream::Clock::now() - begin).count();
}

constexpr std::int64_t kMaxDepth = 1024;

}  // namespace

MessagePlan stream_plan(const Parameters& given, Bytes size, std::string_view sizes) {
  const std::int64_t pairs = given.count("qps", 1, kMaxQueuePairs), depth = given.count("depth", 2, kMaxDepth);
  if (size.count < 2 || size > kMaxMessage)
    throw BadParameter(fmt::format("{}: {} B is not from 2 B to 64 MiB", sizes, size.count));
  return plan_messages(size, pairs, depth, given.bytes("buffer"));
}

AreaLayout layout_for(std::size_t area) {
  return {.source = 0, .target = area, .scratch = 2 * area, .size = 2 * area + kMaxQueuePairs * kWord};
}

AreaLayout layout_apart(std::size_t area) {
  return {.source = 0, .target = 0, .scratch = area, .size = area + kMaxQueuePairs * kWord};
}

Stream::Stream(VerbsEndpoint& endpoint, const MessagePlan& plan, const AreaLayout& layout, VerbsOperation operation,
               Seconds stall)
    : endpoint_(endpoint),
      plan_(plan),
      layout_(layout),
      operation_(operation),
      stall_(stall),
      posted_(plan.queue_pairs),
      done_(plan.queue_pairs),
      last_(Clock::now()) {
  transfers_.reserve(plan.batch);
}

void Stream::post(std::uint32_t pair) {
  const bool reads = operation_ == VerbsOperation::read;
  transfers_.clear();
  for (std::uint32_t i = 0; i < plan_.batch; ++i) {
    const std::size_t offset = plan_.offset(pair, posted_[pair]++);
    transfers_.push_back({.here = (reads ? layout_.target : layout_.source) + offset,
                          .there = (reads ? layout_.source : layout_.target) + offset,
                          .size = static_cast<std::uint32_t>(plan_.size.count)});
  }
  endpoint_.post(operation_, pair, transfers_);
}

std::uint64_t Stream::reap() {
  std::array<Completed, kTaken> taken;
  const std::size_t count = endpoint_.poll_sends(taken);
  if (count == 0) {
    if (++empty_ % kLooksPerClock == 0 && since(last_) > stall_.count) {
      throw std::runtime_error(fmt::format("no message was completed for {:g} s", stall_.count));
    }
    return 0;
  }
  std::uint64_t messages = 0;
  for (std::size_t i = 0; i < count; ++i) {
    done_[taken[i].pair] += taken[i].messages;
    messages += taken[i].messages;
  }
  last_ = Clock::now();
  return messages;
}

std::uint64_t Stream::pump() {
  for (std::uint32_t pair = 0; pair < plan_.queue_pairs; ++pair) {
    while (posted_[pair] - done_[pair] + plan_.batch <= plan_.depth) post(pair);
  }
  return reap();
}

void Stream::finish(const std::function<void()>& meanwhile) {
  const auto behind = [&](std::uint64_t goal) {
    return std::ranges::any_of(posted_, [&](std::uint64_t posted) { return posted < goal; });
  };
  while (behind(plan_.slots)) {
    (void)pump();  // counted in done_
    meanwhile();
  }
  const auto drain = [&] {
    while (posted_ != done_) {
      (void)reap();  // counted in done_
      meanwhile();
    }
  };
  drain();
  if (operation_ != VerbsOperation::write) return;
  for (std::uint32_t pair = 0; pair < plan_.queue_pairs; ++pair) {
    const Transfer word{.here = layout_.scratch + pair * kWord,
                        .there = layout_.target + plan_.offset(pair, 0),
                        .size = static_cast<std::uint32_t>(std::min<std::uint64_t>(kWord, plan_.size.count))};
    endpoint_.post(VerbsOperation::read, pair, {&word, 1});
    ++posted_[pair];
  }
  drain();
}

Receiver::Receiver(VerbsEndpoint& endpoint, const MessagePlan& plan, const AreaLayout& layout)
    : endpoint_(endpoint), plan_(plan), layout_(layout), posted_(plan.queue_pairs), used_(plan.queue_pairs) {
  transfers_.reserve(room(plan));
  for (std::uint32_t pair = 0; pair < plan.queue_pairs; ++pair) post(pair, room(plan));
}

void Receiver::post(std::uint32_t pair, std::uint32_t count) {
  transfers_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    transfers_.push_back({.here = layout_.target + plan_.offset(pair, posted_[pair]++),
                          .there = 0,
                          .size = static_cast<std::uint32_t>(plan_.size.count)});
  }
  endpoint_.post_receives(pair, transfers_);
}

void Receiver::pump() {
  std::array<Completed, kTaken> taken;
  const std::size_t count = endpoint_.poll_receives(taken);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t pair = taken[i].pair;
    if (++used_[pair] < plan_.batch) continue;
    post(pair, used_[pair]);
    used_[pair] = 0;
  }
}

Windows::Windows(Stream& stream, Bytes message, Seconds length, std::function<void()> meanwhile)
    : stream_(stream), message_(message), length_(length), meanwhile_(std::move(meanwhile)) {}

double Windows::next() {
  std::uint64_t messages = 0;
  double time = 0;
  while (messages == 0 || time < length_.count) {
    const std::uint64_t completed = stream_.pump();
    meanwhile_();
    if (completed == 0) continue;
    messages += completed;
    time = std::chrono::duration<double>(stream_.last() - begin_).count();
  }
  begin_ = stream_.last();
  return static_cast<double>(messages * message_.count) / time;
}

}  // namespace assay::verbs
