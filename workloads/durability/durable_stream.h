// durable_stream: a block that says which write it is of, one thread that writes block after block, each made durable
// before the next, and the ledger of acknowledged writes.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"
#include "probes/core/words.h"

namespace assay::durability {

/// How a write becomes durable.
enum class DurableOperation : std::uint8_t { overwrite, append, rename };

constexpr auto words_of(DurableOperation) { return names_as_words<DurableOperation>(); }

/// The place of a block: a slot that is overwritten, a record of a log, a name that files are renamed to.
struct DurableItem {
  DurableOperation operation = DurableOperation::overwrite;
  std::uint32_t stream = 0;  ///< of its writer, less than kMostStreams
  std::uint32_t index = 0;   ///< less than kMostItems
  friend auto operator<=>(const DurableItem&, const DurableItem&) = default;
};
inline constexpr std::uint32_t kMostStreams = 256, kMostItems = 1U << 24U;

/// The place as one number, and back; nothing for a number that is none.
std::uint64_t packed(const DurableItem& item);
std::optional<DurableItem> unpacked(std::uint64_t number);

/// One write of one run.
struct DurableWrite {
  std::uint64_t nonce = 0, writer = 0;
  DurableItem item;
  std::uint64_t generation = 0;  ///< from 1; a later write of the same stream has a larger one
};

inline constexpr std::size_t kDurableBlock = 4096;

/// Fills `block`, kDurableBlock bytes, with what `write` stores.
void make_block(const DurableWrite& write, std::span<std::byte> block);

/// State of the place of an acknowledged write.
enum class BlockState : std::uint8_t {
  right,
  lost,         ///< nothing, or zeros
  rolled_back,  ///< a whole block of an older generation
  torn          ///< anything else: no write made it
};

/// Compares `found` with the last acknowledged write to a place. Every byte counts.
BlockState state_of(const DurableWrite& acknowledged, std::span<const std::byte> found);

/// The generation that `found` states, if it begins as a block does.
std::optional<std::uint64_t> generation_in(std::span<const std::byte> found);

/// The last acknowledged generation of each place that a stream of one writer wrote to.
using Ledger = std::map<DurableItem, std::uint64_t>;

/// Paths of a stream's files.
std::string slots_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream);
std::string log_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream);
std::string name_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream, std::uint32_t index);

/// State of one operation's acknowledged writes.
struct DurableTally {
  std::uint64_t acknowledged = 0, lost = 0, rolled_back = 0, torn = 0;
  std::string first_bad;
  void add(const DurableTally& other);
};

/// Reads every place of `ledger`, which the stream of `writer` wrote to in `folder`, and adds to `tallies`. Where the
/// storage refuses it asks again. Throws std::runtime_error when it has refused for `patience`, or has to stop.
void check_ledger(const Ledger& ledger, const std::string& folder, const DurableWrite& writer, Seconds patience,
                  std::map<DurableOperation, DurableTally>& tallies);

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
