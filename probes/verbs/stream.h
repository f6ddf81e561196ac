// stream: messages of one direction, as many in flight as the plan has, without a pause from the first to the last.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/units.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/messages.h"

namespace assay::verbs {

/// The parameters of every probe that streams messages.
inline constexpr Parameter kStreamParameters[] = {
    parameter("qps", "1", "4", "queue pairs, 1 to 16"),
    parameter("depth", "1", "128", "messages in flight on each queue pair, 2 to 1024"),
    parameter("buffer", "B", "64MiB", "memory for messages at each end; one slot for each queue pair may take more"),
};

/// The plan of these parameters for messages of `size`. Throws BadParameter if a value is out of range, with sizes as
/// that of `sizes`.
MessagePlan stream_plan(const Parameters& given, Bytes size, std::string_view sizes);

/// Offsets of the areas in the memory of both ranks, B from its begin. A message goes from the source area of one rank
/// to the target area of the other, to the same slot.
struct AreaLayout {
  std::size_t source = 0, target = 0;
  std::size_t scratch = 0;  ///< 8 bytes for each queue pair, after the areas
  std::size_t size = 0;     ///< of all
};

/// The layout for areas of `area` bytes.
AreaLayout layout_for(std::size_t area);
/// The same where source and target are memories of their own: the target's holds only the area.
AreaLayout layout_apart(std::size_t area);

/// The posting side of a direction.
class Stream {
 public:
  using Clock = std::chrono::steady_clock;

  /// `endpoint` is connected and outlives the stream. No completion for `stall` throws std::runtime_error.
  Stream(VerbsEndpoint& endpoint, const MessagePlan& plan, const AreaLayout& layout, VerbsOperation operation,
         Seconds stall);

  /// Posts until every queue pair is full, then takes completions; the number of messages that were completed by this
  /// call.
  std::uint64_t pump();
  /// The instant of the last completion that pump() took.
  [[nodiscard]] Clock::time_point last() const { return last_; }
  /// Continues until every slot has been written, waits for all that is in flight, and makes sure that written data is
  /// in the target's memory: a read of each queue pair follows the writes and pushes them there.
  void finish(const std::function<void()>& meanwhile);

 private:
  void post(std::uint32_t pair);
  std::uint64_t reap();

  VerbsEndpoint& endpoint_;
  MessagePlan plan_;
  AreaLayout layout_;
  VerbsOperation operation_;
  Seconds stall_;
  std::vector<std::uint64_t> posted_, done_;
  std::vector<Transfer> transfers_;
  Clock::time_point last_;
  std::uint32_t empty_ = 0;
};

/// The receiving side of sends: room for more messages than are in flight, given back as soon as it is used.
class Receiver {
 public:
  /// Posts the first receives; the endpoint need not be connected yet, but its queue pairs must be ready to receive.
  Receiver(VerbsEndpoint& endpoint, const MessagePlan& plan, const AreaLayout& layout);
  /// Takes received messages and gives the room back.
  void pump();
  /// Receives on each queue pair that a plan needs.
  static std::uint32_t room(const MessagePlan& plan) { return 2 * plan.depth; }

 private:
  void post(std::uint32_t pair, std::uint32_t count);

  VerbsEndpoint& endpoint_;
  MessagePlan plan_;
  AreaLayout layout_;
  std::vector<std::uint64_t> posted_;
  std::vector<std::uint32_t> used_;
  std::vector<Transfer> transfers_;
};

/// Bandwidth of a stream, window by window: bytes completed over the time between the last completions of two windows.
class Windows {
 public:
  /// Windows of `length` or one completion, whichever is longer. `meanwhile` is called in between.
  Windows(Stream& stream, Bytes message, Seconds length, std::function<void()> meanwhile);
  /// The next window, B/s.
  double next();

 private:
  Stream& stream_;
  Bytes message_;
  Seconds length_;
  std::function<void()> meanwhile_;
  Stream::Clock::time_point begin_ = Stream::Clock::now();
};

}  // namespace assay::verbs
