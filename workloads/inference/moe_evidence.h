// moe_evidence: the ranks' answers on their steps, family by family, as figures of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "workloads/inference/expert_exchange.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::inference {

/// Steps of one rank in a row, in s each, and their sent bytes, summed.
struct MoeSteps {
  std::vector<double> dispatch, combine, self, wait;
  ExchangeTraffic traffic;
  Findings findings;
  void add(const ExchangeStep& step);
};
nlohmann::json to_words(const MoeSteps& steps);
MoeSteps moe_steps_from(const nlohmann::json& words);

/// Of one family: every step of all ranks.
struct FamilySteps {
  std::vector<double> dispatch, combine;  ///< of each step, the longest of all ranks, s
  std::vector<double> warmup;             ///< dispatch + combine of the steps before
  std::vector<double> penalties;          ///< of each round
  std::vector<double> imbalances;         ///< of each step
  ExchangeTraffic traffic;                ///< of all of them
  std::int64_t tokens = 0;                ///< of all of them

  /// The steps of one round. Throws std::runtime_error where ranks made different numbers of steps.
  void add(const std::vector<MoeSteps>& ranks, std::int64_t tokens_per_step);
  /// dispatch + combine of the last `count` steps.
  [[nodiscard]] std::vector<double> last(std::size_t count) const;
};

/// Steps of all ranks as those of a training step's ranks: waits are the time of a collective there.
std::vector<train::RankSteps> as_rank_steps(const std::vector<MoeSteps>& ranks);
/// Ranks that delay others: all ranks do the same work.
std::vector<train::RankStanding> moe_standings(const std::vector<MoeSteps>& ranks);

/// Round trips between two ranks, `within` one node or not.
struct Edge {
  std::int64_t low = 0, high = 0;
  bool within = false;
  std::vector<double> times;
};
/// The median of each edge over the fastest quarter of its class (type-7 percentile 25); nothing for classes of fewer
/// than three edges. In the order of `edges`.
std::vector<std::optional<double>> edge_shares(const std::vector<Edge>& edges);

/// The partner of rank `rank` of `ranks` in round `round` of ranks - 1 (or ranks, if that is odd), so that each meets
/// each once (the circle method); -1 if it rests.
std::int64_t partner_in(std::int64_t round, std::int64_t rank, std::int64_t ranks);

}  // namespace assay::inference
