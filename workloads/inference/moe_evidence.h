// moe_evidence: the ranks' answers on their steps, family by family, as figures of all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "workloads/inference/expert_exchange.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::inference {

/// Steps of one rank in a row, in s each, and their sent bytes, summed.
struct MoeSteps {
  std::vector<double> dispatch, combine, self, wait;
  ExchangeTraffic traffic;
  std::optional<double> pair = {};  ///< a dispatch, work and combine of a row of them, of which only the first waits
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
  std::vector<double> pairs;              ///< of each row of pairs, the longest of all ranks
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

/// Round trips of every two ranks, as many at a time as there are pairs without a rank in common: of those that the
/// rank of `job` leads, the other rank and the time in s. Before each such round it calls `meet`, in which all ranks
/// meet.
template <class Meet, class RoundTrip>
nlohmann::json edges_of(const ExchangeJob& job, const Meet& meet, const RoundTrip& round_trip) {
  const std::int64_t ranks = job.routing.ranks;
  nlohmann::json led = nlohmann::json::array();
  for (std::int64_t round = 0; round < ranks + ranks % 2 - 1; ++round) {
    meet();
    const std::int64_t peer = partner_in(round, job.rank, ranks);
    if (peer < 0) continue;
    const double time_s = round_trip(peer);
    if (job.rank < peer) led.push_back({peer, time_s});
  }
  return led;
}

}  // namespace assay::inference
