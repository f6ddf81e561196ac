// fault_crew: which process is which rank, requests to them and losses meanwhile; abort, rebuild and restore.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "workloads/train/faults/fault_run.h"

namespace assay::train {

/// A rank that is lost.
struct LostRank {
  std::int64_t rank = 0;
  std::size_t slot = 0;
  std::string how;
  std::optional<double> since_s;  ///< since a fault was injected into it; nothing if none was
};

/// Answers by rank, or the lost ranks.
struct CrewAnswers {
  std::vector<nlohmann::json> answers;
  std::vector<LostRank> lost;
};

/// The prints of a save, by rank: restored states are compared with them.
using Prints = std::vector<std::uint64_t>;

/// The ranks of the plan and their spares.
class Crew {
 public:
  Crew(collective::WatchedFleet& fleet, const FaultJob& job, FaultOutcome& outcome);

  /// Every slot answers. Those of the plan and the spares have memory for it; throws BadParameter else.
  void greet();
  /// Every rank begins anew, with the weights of step 0; answers to "enter".
  std::vector<nlohmann::json> begin();
  /// Puts one request to each rank, by rank, and waits for all answers, or until some ranks are lost. Throws
  /// std::runtime_error when a rank answers with an error and none is lost, or none answers in time.
  CrewAnswers ask(const std::vector<nlohmann::json>& requests);
  /// The same request to all. Throws std::runtime_error when a rank is lost, too.
  std::vector<nlohmann::json> demand(const nlohmann::json& request);
  /// Nothing waits for `lost` any longer; their processes are ended.
  void abort(const std::vector<LostRank>& lost);
  /// Spares take their places and all are connected. Throws std::runtime_error when there is none.
  void rebuild(const std::vector<LostRank>& lost);
  /// Every rank has its state after `step`; those of `lost` from the nearest place that has it.
  void restore(const std::vector<LostRank>& lost, std::int64_t step, const Prints& prints);
  /// New processes in the places of those that were lost, as spares.
  void restock();

 private:
  using Requests = std::vector<std::pair<std::size_t, nlohmann::json>>;  ///< by slot
  /// By slot; `lost` gets the lost ones, and the answers of the others are waited for no longer.
  std::map<std::size_t, nlohmann::json> gather(const Requests& requests, std::vector<LostRank>& lost);
  std::map<std::size_t, nlohmann::json> gather_all(const Requests& requests);
  void take_events(std::map<std::size_t, nlohmann::json>& answers, std::vector<LostRank>& lost);
  void settle(const std::vector<LostRank>& lost);
  std::vector<nlohmann::json> connect();
  void be(std::int64_t rank);
  void restore_one(std::int64_t rank, std::int64_t step, std::uint64_t print, bool holder_lost);
  bool try_tier(std::int64_t rank, std::int64_t step, std::uint64_t print, Tier tier);
  [[nodiscard]] std::string title(std::int64_t rank) const;

  collective::WatchedFleet& fleet_;
  const FaultJob& job_;
  FaultOutcome& outcome_;
  std::vector<std::size_t> slots_;  ///< by rank
  std::set<std::size_t> spares_, ended_;
  std::vector<std::string> gone_;    ///< why there are fewer spares than at the begin of the case
  std::map<std::size_t, int> owed_;  ///< answers that a slot has not given yet
  std::vector<std::size_t> counts_;  ///< numbers in the state of each rank
  std::int64_t group_ = 0;           ///< of the present connections
};

}  // namespace assay::train
