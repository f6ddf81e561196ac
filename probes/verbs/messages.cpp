// messages: arithmetic of slots, and the payload pattern.
#include "probes/verbs/messages.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace assay::verbs {
namespace {

constexpr std::size_t kCacheLine = 64;  // no two small messages share one
constexpr std::uint64_t kBatch =
    256 << 10;  // B posted with one call: fewer doorbells and completions, and 5 us on a port of 400 Gb/s

/// Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators": the finaliser of SplitMix64, a
/// bijection.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Calls `each` with the place of every slot and the number from which its words are mixed.
template <class Each>
void for_each_slot(const MessagePlan& plan, const Stamp& stamp, const Each& each) {
  for (std::uint32_t pair = 0; pair < plan.queue_pairs; ++pair) {
    for (std::uint32_t slot = 0; slot < plan.slots; ++slot) {
      each(plan.offset(pair, slot), mix(mix(stamp.seed) ^ (std::uint64_t{pair} << 32 | slot)));
    }
  }
}

/// Calls `each` with the position, the number of bytes and the eight bytes of every word of one slot.
template <class Each>
void for_each_word(std::size_t size, std::uint64_t base, const Each& each) {
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    each(at, std::min(sizeof(std::uint64_t), size - at), mix(base + at));
  }
}

}  // namespace

VerbsOperation verbs_operation(std::string_view name) {
  if (name == "read") return VerbsOperation::read;
  return name == "send" ? VerbsOperation::send : VerbsOperation::write;
}

MessagePlan plan_messages(Bytes size, std::int64_t queue_pairs, std::int64_t depth, Bytes memory) {
  MessagePlan plan{
      .size = size, .queue_pairs = static_cast<std::uint32_t>(queue_pairs), .depth = static_cast<std::uint32_t>(depth)};
  plan.stride = (size.count + kCacheLine - 1) / kCacheLine * kCacheLine;
  const std::uint64_t fitting = memory.count / (plan.stride * plan.queue_pairs);
  plan.slots = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fitting, 1, plan.depth));
  plan.batch =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kBatch / size.count, 1, std::max(1U, plan.depth / 4)));
  return plan;
}

void fill_messages(std::span<std::byte> area, const MessagePlan& plan, const Stamp& stamp) {
  for_each_slot(plan, stamp, [&](std::size_t offset, std::uint64_t base) {
    for_each_word(plan.size.count, base, [&](std::size_t at, std::size_t bytes, std::uint64_t word) {
      std::memcpy(area.data() + offset + at, &word, bytes);
    });
  });
}

void poison_messages(std::span<std::byte> area, const MessagePlan& plan, const Stamp& stamp) {
  for_each_slot(plan, stamp, [&](std::size_t offset, std::uint64_t base) {
    for_each_word(plan.size.count, base, [&](std::size_t at, std::size_t bytes, std::uint64_t word) {
      const std::uint64_t other = ~word;
      std::memcpy(area.data() + offset + at, &other, bytes);
    });
  });
}

std::uint64_t count_mismatches(std::span<const std::byte> area, const MessagePlan& plan, const Stamp& stamp) {
  std::uint64_t wrong = 0;
  for_each_slot(plan, stamp, [&](std::size_t offset, std::uint64_t base) {
    for_each_word(plan.size.count, base, [&](std::size_t at, std::size_t bytes, std::uint64_t word) {
      std::array<std::byte, sizeof word> expected;
      std::memcpy(expected.data(), &word, sizeof word);
      const std::byte* const found = area.data() + offset + at;
      if (std::memcmp(found, expected.data(), bytes) == 0) return;
      for (std::size_t i = 0; i < bytes; ++i) wrong += found[i] != expected[i] ? 1 : 0;
    });
  });
  return wrong;
}

}  // namespace assay::verbs
