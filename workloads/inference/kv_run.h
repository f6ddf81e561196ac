// kv_run: transfers of a pair, paged and in one piece in turns, each way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/host/buffer.h"
#include "workloads/inference/kv_blocks.h"

namespace assay::inference {

/// The transfer, and its repetitions.
struct KvPlan {
  KvShape shape;
  KvLayout layout = KvLayout::layer;
  std::size_t streams = 4;
  std::int64_t transfers = 10;
};

/// Reads `given`. Throws BadParameter if a value is out of range, or does not divide (with the nearest that does).
KvPlan kv_plan(const Parameters& given);
/// Throws BadParameter, with the most tokens that do, where the cache of `plan` does not fit into `room`, which is
/// `what` ("half of memory").
void check_kv_room(const KvPlan& plan, Bytes room, std::string_view what);

/// Times of one direction, by the receiver, in s.
struct KvTimes {
  std::vector<double> first, all;  ///< of each paged transfer
  std::vector<double> contiguous;  ///< of each in one piece
};

/// Results of a pair's transfers, the same on both ranks.
struct KvOutcome {
  KvTimes forward, backward;  ///< from rank 0 to rank 1, and back; backward is empty on loopback
  Findings findings;
};

/// The way of blocks from this rank's memory into the other's, and the memory: streams of TCP, or queue pairs.
struct KvCarrier {
  /// Sends these blocks as soon as the receiver asks, and takes them in; see send_blocks() and receive_blocks().
  std::function<void(const std::vector<KvBlock>&, const KvKey&)> send;
  std::function<KvTaken(const std::vector<KvBlock>&, const KvKey&)> receive;
  /// Lets `make` fill the memory, and `look` at it: plan.shape.bytes() bytes.
  std::function<void(const std::function<void(std::span<std::byte>)>& make)> fill;
  std::function<void(const std::function<void(std::span<const std::byte>)>& look)> read;
};

/// The carrier over TCP, with memory of this host; all must outlive it.
class KvStreams {
 public:
  KvStreams(const KvPlan& plan, const host::Streams& streams, Rendezvous& group);
  [[nodiscard]] KvCarrier carrier();

 private:
  const host::Streams& streams_;
  Rendezvous& group_;
  host::Buffer memory_;
};

/// Both ranks do the same; `both_ways` on a fabric. Throws as carrier and rendezvous.
KvOutcome transfer_all(const KvPlan& plan, bool both_ways, const KvCarrier& carrier, Rendezvous& group);

/// Records the sizes of a transfer, on every rank.
void record_plan(const KvPlan& plan, Recorder& record);

/// Records them; no rate where anything was wrong. `link` is the rate of the slower port, if known.
void record_transfers(const KvPlan& plan, bool fabric, const KvOutcome& outcome,
                      const std::optional<BytesPerSecond>& link, const Subject& subject, Recorder& record);

}  // namespace assay::inference
