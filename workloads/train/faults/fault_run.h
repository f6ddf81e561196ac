// fault_run: the leader of rank 0 trains twice, once undisturbed and once with faults, and brings the ranks back after
// each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/watched_fleet.h"
#include "workloads/train/engine/host_engine.h"
#include "workloads/train/faults/fault_plan.h"
#include "workloads/train/faults/kept_states.h"

namespace assay::train {

/// Parameters of a run.
struct FaultJob {
  RankJob job;
  FaultPlan faults;
  collective::HeartbeatLimits heartbeat;
  std::size_t ranks_per_node = 1;  ///< of the plan; a node's further slots are spares
  std::string shared;              ///< a folder that every node can write to; empty: none
  Tier corrupt = Tier::own;        ///< the copies up to this tier are spoiled before they are restored; own: none
};

/// Stand-in for a kind of fault if there is none.
inline constexpr std::string_view kUndisturbed = "none";

/// Its results. Times in s.
struct FaultOutcome {
  std::vector<double> step_time;  ///< of the undisturbed run, the longest of all ranks
  std::vector<double> save_time;  ///< of the undisturbed run, the longest of all ranks
  std::vector<FaultCase> repaired;
  std::vector<Recovery> recoveries;       ///< of each of these
  std::vector<std::int64_t> lost_steps;   ///< of each: steps that were done again
  std::map<Tier, std::int64_t> restored;  ///< states by their source
  std::int64_t refused = 0;               ///< copies that were missing or damaged
  /// States of ranks that differ from those of the undisturbed run, by the kind of fault before, of every kind.
  std::map<std::string_view, std::int64_t> mismatches;
  /// Ranks that were given up though no fault had ended them, by the kind of the case; kUndisturbed: in the run without
  /// faults.
  std::map<std::string_view, std::int64_t> false_losses;
  std::vector<std::string> notes;     ///< times and errors of each case
  std::vector<nlohmann::json> facts;  ///< of every rank's connections
};

/// Runs it; `entered` is called with the answers of all ranks to "enter", the first time. Throws std::runtime_error
/// when there is no spare for a lost rank, when a state is nowhere left, when a rank fails without a fault, and when a
/// struck one continues; BadParameter when the plan does not fit the memory of the ranks.
FaultOutcome conduct_faults(collective::WatchedFleet& fleet, const FaultJob& job,
                            const std::function<void(const std::vector<nlohmann::json>&)>& entered);

}  // namespace assay::train
