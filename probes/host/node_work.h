// node_work: the work of a node for the traffic of its probe, phase by phase: processors that were busy meanwhile, and
// the part of its packets that hardware forwarded.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/host/forwarded.h"

namespace assay::host {

/// The metrics and conditions that WorkOfPhases records.
inline constexpr Metric kWorkMetrics[] = {
    lower("busy_cores", "1",
          "processors of the busier of the two nodes that were at work, those of the probe among them, one sample for "
          "each of the phases",
          Recorded::rank_0),
    lower("switch_cores", "1",
          "those of them at work in ovs-vswitchd and in vhost threads, one sample for each of the phases",
          Recorded::if_present),
};
inline constexpr ConditionSpec kWorkConditions[] = {
    if_reported("offloaded_share",
                "Share of the traffic of the two nodes that the hardware of their adapters forwarded, of packets or "
                "bytes, whichever is smaller, on the node and in the phase with the smallest; absent where nothing "
                "counts it on one of them, or where less was counted than the probe's payload."),
    if_reported("offload_source", "Its counters: ports, ovs or tc, as of the parameter offload_counters."),
};

/// Processor time since the machine booted.
struct ProcessorTime {
  double busy_s = 0;                 ///< of all processors, in user or kernel mode or in interrupts
  std::optional<double> switch_s{};  ///< of ovs-vswitchd and vhost threads; nothing if there is none
};

/// Of proc/stat, and of proc/PID/stat of processes called ovs-vswitchd, of kernel threads vhost-N, and of threads of
/// that name in virtual machines. Throws std::runtime_error when proc/stat is not readable.
ProcessorTime processor_time(const MachineTree& tree);

/// The work of one phase on one node.
struct PhaseWork {
  double busy_cores = 0;
  std::optional<double> switch_cores = {}, offloaded_share = {};
};

/// Watches the phases of a pair. Both ranks call the same in the same order.
class WorkOfPhases {
 public:
  /// `counters` as of kOffloadCounters.
  explicit WorkOfPhases(std::string counters) : counters_(std::move(counters)) {}

  /// Immediately before the payload of a phase.
  void begin();
  /// Immediately after it, before anything else is exchanged: processors are read.
  void end();
  /// Then: `payload` is the least B that this node has sent or received in the phase. `established`: the packets
  /// belonged to flows that stayed, so that offloaded_share is theirs; else only the processors count. Where counters
  /// are read, they get two seconds to catch up.
  void settle(Rendezvous& group, std::uint64_t payload, bool established = true);
  /// Records the conditions of this rank and, as rank 0, the metrics.
  void record(Recorder& record, int rank, const Subject& subject) const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string counters_;
  ForwardCounters before_ = {};
  ProcessorTime from_ = {}, to_ = {};
  Clock::time_point begun_ = {}, ended_ = {};
  std::vector<std::array<PhaseWork, 2>> phases_;  ///< by phase and rank
  std::optional<double> least_share_;             ///< of both ranks
  bool share_unknown_ = false;                    ///< of one of them in one phase
};

}  // namespace assay::host
