// pingpong: one message forth and one back, timed one by one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "probes/core/units.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/messages.h"
#include "probes/verbs/stream.h"

namespace assay::verbs {

/// Two ranks that throw one message to and fro. The last byte of a message counts the throws, so that a rank sees each
/// one arrive and no old one is taken for a new one. In memory that the processors cannot see nothing is counted: read
/// and send alone are played there, and each completion, in the order that a reliable connection keeps, is one message.
class PingPong {
 public:
  /// How large the queues must be.
  static constexpr std::uint32_t kSends = 64, kReceives = 64;

  /// Messages of `size` (2 B at least) over the first queue pair of `endpoint`, which outlives this. Made before the
  /// endpoint is connected: it clears the counting byte of the target and with send posts the first receives.
  PingPong(VerbsEndpoint& endpoint, const RegisteredMemory& memory, const AreaLayout& layout, Bytes size,
           VerbsOperation operation, Seconds stall);

  /// Rank 0: throws `count` times and catches the answers; seconds from each post to the arrival of the answer, or with
  /// read to the completion. Throws std::runtime_error when nothing comes for the stall limit.
  std::vector<double> lead(std::size_t count);
  /// Rank 1: answers `count` times; with read there is nothing to do.
  void follow(std::size_t count);

 private:
  void throw_message();
  void await_message();
  void await_memory();
  void await_receive();
  void reclaim();

  VerbsEndpoint& endpoint_;
  std::byte* source_last_ = nullptr;  ///< last byte of the message to throw; null if it cannot be seen
  std::byte* target_last_ = nullptr;  ///< last byte of the message to catch; the same
  Transfer message_;                  ///< as it is posted
  Transfer room_;                     ///< as it is received
  VerbsOperation operation_;
  Seconds stall_;
  std::array<Completed, kSends> taken_;
  std::uint32_t posted_ = 0;  ///< not yet reclaimed
  std::uint8_t thrown_ = 0, caught_ = 0;
};

/// Percentiles of one batch of samples, s.
struct LatencySummary {
  double p50 = 0, p99 = 0, p999 = 0, largest = 0;
};

/// Type 7 percentiles, and the largest sample itself; nothing is left out. Not empty.
LatencySummary summary_of(const std::vector<double>& samples);

}  // namespace assay::verbs
