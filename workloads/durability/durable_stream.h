// durable_stream: one thread that writes block after block, each made durable before the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"
#include "workloads/durability/durability_ledger.h"

namespace assay::durability {

/// Settings of all streams of a run.
struct DurabilitySettings {
  std::string folder;
  std::uint64_t nonce = 0;
  std::uint32_t streams = 1;
  std::uint32_t slots = 1;  ///< that a stream overwrites in turn
  Seconds duration, stall, recovery;
};

/// At most so many records and names, so that a stream's use is bounded: 64 MiB and 16 files.
inline constexpr std::uint32_t kMostRecords = 1U << 14U, kDurableNames = 16;

/// Results of a stream.
struct StreamOutcome {
  std::uint64_t refused = 0;         ///< calls
  double longest_s = 0;              ///< from the beginning of a write until it was durable
  std::optional<double> recovery_s;  ///< of the write that was refused or took longer than `stall`
  std::string first_refusal;
};

/// Is given each write when it is durable.
using Acknowledge = std::function<void(const DurableItem&, std::uint64_t generation)>;

/// One stream of one writer.
class DurableStream {
 public:
  DurableStream(const DurabilitySettings& settings, std::uint64_t writer, std::uint32_t stream)
      : settings_(settings), writer_(writer), stream_(stream), block_(kDurableBlock) {}

  /// Writes until the duration is over, or until the first write that was refused or took longer than `stall` is
  /// durable after all: data acknowledged before is then not overwritten. Calls `acknowledge` after each. Throws
  /// std::runtime_error where a write is refused for longer than `recovery`, or `abandoned` turns true.
  StreamOutcome run(const Acknowledge& acknowledge, const std::atomic<bool>& abandoned);

 private:
  [[nodiscard]] DurableItem item_of(std::uint64_t generation) const;
  void write_once(const DurableItem& item);
  void overwrite(const DurableItem& item);
  void append(const DurableItem& item);
  void replace(const DurableItem& item);
  void write_durable(const DurableItem& item, const std::atomic<bool>& abandoned, StreamOutcome& outcome);

  const DurabilitySettings& settings_;
  std::uint64_t writer_;
  std::uint32_t stream_, records_ = 0;
  std::vector<std::byte> block_;
  Descriptor slots_, log_;
};

}  // namespace assay::durability
