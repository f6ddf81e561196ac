// kv_run: transfers of a pair, paged and in one piece in turns, each way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/inference/kv_blocks.h"

namespace assay::inference {

/// The transfer, and its repetitions.
struct KvPlan {
  KvShape shape;
  KvLayout layout = KvLayout::layer;
  std::size_t streams = 4;
  std::int64_t transfers = 10;
};

/// Reads `given`. Throws BadParameter if a value is out of range, does not divide (with the nearest that does), or
/// takes more than half of `memory`.
KvPlan kv_plan(const Parameters& given, Bytes memory);

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

/// Both ranks do the same; `both_ways` on a fabric. Throws as streams and rendezvous.
KvOutcome transfer_all(const KvPlan& plan, bool both_ways, const host::Streams& streams, Rendezvous& group);

/// Records them; no rate where anything was wrong. `link` is the rate of the slower port, if known.
void record_transfers(const KvPlan& plan, bool fabric, const KvOutcome& outcome,
                      const std::optional<BytesPerSecond>& link, const Subject& subject, Recorder& record);

}  // namespace assay::inference
