// moe_run: the leader of rank 0 asks all ranks, family by family, and records.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/fleet.h"
#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "workloads/inference/moe_evidence.h"

namespace assay::inference {

/// Results of a run.
struct MoeOutcome {
  ExchangeJob job;
  std::vector<std::string> nodes;  ///< names, unlike each other, by node
  bool fabric = false;             ///< between machines
  std::map<Family, FamilySteps> families;
  std::vector<double> after_idle;  ///< first steps after idleness, s
  /// Of the steps of `spread`, in which all ranks have the same to do.
  struct RankFigures {
    std::vector<double> self_time, lateness, last_share, self_share;
  };
  std::vector<RankFigures> ranks;
  std::vector<Edge> edges;
  Findings findings;
};

/// Records it. Rates are left out of families that are forced, and of all where anything was wrong.
void record_outcome(const MoeOutcome& outcome, Recorder& record);

/// Differences between the engines. Each call gets the answers of all ranks, by rank, and throws std::runtime_error
/// when the measurement cannot continue.
struct EngineRules {
  using Answers = std::vector<nlohmann::json>;
  std::function<Bytes(const Answers&)> admit;              ///< after "hello": memory that a rank may take
  std::function<std::uint64_t(const ExchangeJob&)> needs;  ///< B that a rank takes, in any family
  std::function<void(const Answers&)> entered;             ///< after "enter", or null
};

/// Runs `job` on the ranks of `fleet`, as `given` has it. Throws std::runtime_error when a rank fails, BadParameter
/// when the job does not fit the memory of the ranks.
MoeOutcome conduct_exchange(collective::Fleet& fleet, const Parameters& given, const ExchangeJob& job,
                            const EngineRules& rules);

/// Records the engine, ranks, nodes and sizes of a job.
void record_job(const Parameters& given, const ExchangeJob& job, const std::vector<std::string>& nodes,
                Recorder& record);

}  // namespace assay::inference
