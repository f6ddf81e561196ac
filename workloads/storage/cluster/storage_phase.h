// storage_phase: all ranks of a group write, read or do both on one storage from a common start.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/core/words.h"
#include "workloads/storage/cluster/block_stream.h"

namespace assay::cluster_storage {

/// Layout of the transfers of all streams in the files of one set.
struct BlockLayout {
  bool shared = false;        ///< one file for all streams; else one each
  std::uint64_t block = 0;    ///< B of one transfer
  std::uint64_t streams = 1;  ///< writers of the set
};

/// Where transfer `index` of `stream` begins in its file: one behind the other in a file of its own; in a shared file
/// in segments that hold one transfer of every stream, as IOR's interleaved pattern (IO500, ior-hard).
constexpr std::uint64_t block_offset(const BlockLayout& layout, std::uint64_t stream, std::uint64_t index) {
  return layout.shared ? (index * layout.streams + stream) * layout.block : index * layout.block;
}
static_assert(block_offset({.shared = true, .block = 47008, .streams = 4}, 3, 2) == std::uint64_t{11} * 47008);
static_assert(block_offset({.shared = false, .block = 47008, .streams = 4}, 3, 2) == std::uint64_t{2} * 47008);

/// The file of `stream` in the set of this number.
std::string block_file(const BlockLayout& layout, std::uint64_t set, std::uint64_t stream);

/// One operation of a stream that reads and writes by turns.
struct MixedOperation {
  bool reads = false;
  std::uint64_t number = 0;  ///< which of the reads, or of the writes
  friend bool operator==(const MixedOperation&, const MixedOperation&) = default;
};

/// Operation `index` where `read_share` of all, 0 to 1, are reads, spread evenly.
MixedOperation mixed_operation(std::uint64_t index, double read_share);

/// How many operations make at most `reads` reads and at most `writes` writes.
std::uint64_t mixed_operations(std::uint64_t reads, std::uint64_t writes, double read_share);

/// Work of the streams of a phase.
enum class Move { write, read, mixed };

constexpr auto words_of(Move) { return names_as_words<Move>(); }

/// Settings of all phases of a run. A stream is one thread of one rank; rank r has the streams from r x threads on.
struct StorageSettings {
  std::string folder;   ///< shared by all ranks
  BlockLayout layout;   ///< streams: of all ranks
  StreamPlan stream;    ///< of every stream
  std::size_t threads;  ///< of each rank
  int shift = 1;        ///< rank r reads the files written by rank r - shift
  double read_share = 0.7;
  std::uint64_t nonce = 0;
};

/// One phase.
struct PhasePlan {
  Move move = Move::write;
  std::uint64_t written_set = 0, read_set = 0;
  std::vector<bool> active;          ///< by rank; the others only meet
  bool complete = false;             ///< wear-out: every stream continues until it has done as much as the furthest one
  std::optional<double> duration_s;  ///< no transfer is begun after it, but for the wear-out
  std::vector<std::uint64_t> firsts;  ///< by stream of all ranks: number of its first operation
  std::vector<std::uint64_t> limits;  ///< and one past its last
};

/// Work of one rank in a phase.
struct ClientPhase {
  bool active = false;
  double open_s = 0;   ///< of its slowest stream to open its files
  double sync_s = 0;   ///< of its slowest stream to fsync, and of the directory
  double close_s = 0;  ///< of its slowest stream to close its files
  double time_s = 0;   ///< from the common start until all is closed
  double bytes = 0, bytes_at_stonewall = 0;
  std::optional<double> latency_p99;      ///< s
  std::uint64_t mismatches = 0;           ///< B
  std::string first_wrong;                ///< path and offset of the first
  std::optional<std::uint64_t> resident;  ///< pages of its input in its page cache before; if reported
  std::optional<double> wire;             ///< B received by wire or from devices meanwhile; if reported
  std::vector<std::uint64_t> reached;     ///< by its streams: one past the last operation
};

/// Results of a phase, the same on every rank.
struct PhaseTaken {
  double stonewall_s = 0;     ///< until when all were at work
  double start_spread_s = 0;  ///< the longest that a rank spent in a barrier which all entered at once
  std::vector<ClientPhase> clients;

  /// The bytes of the active ranks at the stonewall, in their order.
  [[nodiscard]] std::vector<double> at_stonewall() const;
  /// All bytes over the time of the last rank, B/s.
  [[nodiscard]] double bandwidth() const;
  /// By stream of all ranks: one past the last operation.
  [[nodiscard]] std::vector<std::uint64_t> reached() const;
};

/// Runs phases; every rank makes the same calls.
class StorageGroup {
 public:
  /// Throws as BlockStream.
  StorageGroup(Rendezvous& group, const StorageSettings& settings);
  ~StorageGroup();
  /// The phase of `plan`.
  PhaseTaken run(const PhasePlan& plan);
  /// B/s that this rank's threads make and compare without any storage: the limit of its client.
  double payload_ceiling();
  /// The stream of all ranks whose data `stream` reads.
  [[nodiscard]] std::uint64_t read_by(std::uint64_t stream) const;

 private:
  struct ThreadPart;
  [[nodiscard]] std::uint64_t stream_of(std::size_t part) const;
  void open_files(ThreadPart& part, const PhasePlan& plan);
  [[nodiscard]] BlockOperation operation(const ThreadPart& part, const PhasePlan& plan, std::uint64_t index) const;
  std::optional<std::uint64_t> drop_cache(const PhasePlan& plan);
  void together(const std::function<void(ThreadPart&)>& work);
  double work(const PhasePlan& plan, ClientPhase& mine);
  void finish(const PhasePlan& plan, double stonewall_s, ClientPhase& mine);

  Rendezvous& group_;
  StorageSettings settings_;
  std::vector<ThreadPart> parts_;
  std::chrono::steady_clock::time_point begin_;
  std::atomic<bool> abandoned_ = false;  ///< another rank has ended early
};

}  // namespace assay::cluster_storage
