// training: requests of every training probe to its ranks: to meet, to prove that they compute exactly, to step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/rank_child.h"
#include "probes/core/parameters.h"
#include "workloads/train/engine/host_engine.h"
#include "workloads/train/graph/step_edges.h"
#include "workloads/train/graph/step_groups.h"
#include "workloads/train/step/package_energy.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::train {

/// The processes of `count` ranks from `first` on, of the program of train_step at `path`; `address` is this node's.
std::vector<collective::RankProgram> rank_programs(const std::string& path, const RankJob& job, std::int64_t first,
                                                   std::int64_t count, const std::string& address,
                                                   const std::vector<std::string>& environment);

/// The ranks of one job, asked together by the leader of rank 0. Every function throws as Fleet::ask.
class Training {
 public:
  /// `given` has kPlanParameters and reference: with one_rank, exact steps are compared with those of one rank. `grace`
  /// is the waiting time for a rank beyond the limit of each request.
  Training(collective::Fleet& fleet, const Parameters& given, const RankJob& job, Seconds grace = collective::kGrace);

  /// Admits the job to the memory of the ranks and connects them; `entered` is called with the answers of all ranks to
  /// "enter", if there are several. Throws BadParameter when the plan, or that of a single rank, does not fit.
  void meet(const std::function<void(const std::vector<nlohmann::json>&)>& entered);
  /// Two steps in exact arithmetic, each twice; differences are counted and noted as found at `when`.
  void check_exact(const std::string& when);
  /// Every rank makes weights and memory for the steps that follow.
  void prepare();
  /// `count` steps of every rank, within `limit`.
  std::vector<RankSteps> steps(Variant variant, std::int64_t count, Seconds limit = collective::kBatchLimit);
  /// Gradients of one step on the same tokens, compared between the replicas, within `limit`.
  void vote(Seconds limit = collective::kBatchLimit);
  /// The time of a message of kEdgeMessage B there and back on each of `edges`, by edge, in s.
  std::vector<double> edge_times(const std::vector<Edge>& edges);
  /// A full step of every rank; by rank its stretches_of().
  std::vector<std::vector<std::vector<double>>> timeline();
  /// By place in kGroupKinds, the time of a pass of messages of each kind while all kinds have theirs over that by
  /// itself; 0 if there is none.
  std::vector<double> group_shares();
  /// Counters of the packages of every node, by node; nothing for a node without counters under `root`.
  std::vector<std::optional<PackageEnergies>> energies(const std::string& root);
  /// The end of these steps: weights are finite, and the same on all replicas. prepare() may follow.
  void settle();
  /// Answers of all ranks to "facts".
  std::vector<nlohmann::json> facts();

  /// Findings of all checks so far, and a sentence for each.
  [[nodiscard]] std::uint64_t mismatches() const { return mismatches_; }
  [[nodiscard]] const std::vector<std::string>& findings() const { return findings_; }
  /// Largest share, over ranks and compute-only steps, in which a rank did not run.
  [[nodiscard]] double off_cpu() const { return off_cpu_; }

 private:
  std::vector<double> group_passes(const std::vector<std::int64_t>& passes);
  std::vector<nlohmann::json> ask(const nlohmann::json& request, Seconds limit);
  [[nodiscard]] bool with_reference() const { return given_.text("reference") == "one_rank"; }
  [[nodiscard]] std::uint64_t aside() const;
  void accuse(const Blame& blame, const std::string& when);

  collective::Fleet& fleet_;
  const Parameters& given_;
  const RankJob& job_;
  Seconds grace_;
  std::uint64_t number_ = 0, mismatches_ = 0;
  double off_cpu_ = 0;
  std::vector<std::string> findings_;
};

}  // namespace assay::train
