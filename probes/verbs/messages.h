// messages: how many messages are in flight, their places in memory, and their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "probes/core/units.h"

namespace assay::verbs {

/// Operation of a message. With write and send the sender of the payload posts, with read its receiver.
enum class VerbsOperation { write, read, send };

/// The words of VerbsOperation, for a parameter.
inline constexpr const char* kVerbsOperations = "write read send";

/// The operation of that name; the parameter's choices have been checked.
VerbsOperation verbs_operation(std::string_view name);

/// Most queue pairs of one measurement.
inline constexpr std::int64_t kMaxQueuePairs = 16;
/// Largest message. The InfiniBand Architecture allows 2 GiB; acceptance stops at 8 MiB, and larger ones measure the
/// same.
inline constexpr Bytes kMaxMessage = {64 << 20};

/// Messages of one size over several queue pairs. Message k of a queue pair is in its slot k % slots, at both ends.
struct MessagePlan {
  Bytes size;
  std::uint32_t queue_pairs = 1;
  std::uint32_t depth = 128;  ///< messages in flight on each queue pair
  std::uint32_t batch = 1;    ///< messages posted with one call, of which the last one signals its completion
  std::uint32_t slots = 1;    ///< of each queue pair
  std::size_t stride = 0;     ///< B from slot to slot

  /// Bytes of memory at each end.
  [[nodiscard]] std::size_t area() const { return std::size_t{queue_pairs} * slots * stride; }
  /// Where slot `slot` of queue pair `pair` begins in the area.
  [[nodiscard]] std::size_t offset(std::uint32_t pair, std::uint64_t slot) const {
    return (std::size_t{pair} * slots + static_cast<std::size_t>(slot % slots)) * stride;
  }
};

/// The plan for messages of `size`: as many slots as are in flight, but no more memory than `memory` unless one slot
/// for each queue pair needs it. Messages are posted in batches of 256 KiB, and of a quarter of the depth at most.
MessagePlan plan_messages(Bytes size, std::int64_t queue_pairs, std::int64_t depth, Bytes memory);

/// Identity of one filling of the area.
struct Stamp {
  std::uint64_t seed = 0;  ///< of size and direction
};

/// Fills every slot of `area` with its pattern: 8-byte words from a bijective mix (splitmix64) of seed, queue pair,
/// slot and position, so that a message in the wrong place, of another run or shifted by a byte differs.
void fill_messages(std::span<std::byte> area, const MessagePlan& plan, const Stamp& stamp);

/// Overwrites the whole area with bytes that no pattern has at the same place.
void poison_messages(std::span<std::byte> area, const MessagePlan& plan, const Stamp& stamp);

/// Bytes of all slots that differ from fill_messages()'s.
std::uint64_t count_mismatches(std::span<const std::byte> area, const MessagePlan& plan, const Stamp& stamp);

}  // namespace assay::verbs
