// training_model: the ranks of a training step that does not exist, walked through the graph of its operations: how
// much longer the step takes with slow nodes and links, and each rank's times relative to the others.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "probes/core/parameters.h"
#include "workloads/train/graph/step_job.h"

namespace assay::simulate {

/// The rest of a node's speed, and of that of the path between two nodes, from 0 (excluded) to 1.
struct NodeSpeeds {
  std::vector<double> nodes;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, double>> links;  ///< both nodes, the smaller first
};

/// A step on slow nodes and the same one on healthy nodes.
struct TrainingShares {
  double step = 1, compute = 1, comm = 1;  ///< their times over those of healthy nodes
  std::vector<double> self_time;           ///< by rank, over that of a healthy one
  std::vector<double> self_share;          ///< by rank: self time over the median of the others at its pipeline place
  std::vector<double> last_share;          ///< by rank: 1 where the others wait for it, 1/n each where for none
  std::vector<double> edge_time;           ///< by edge, over that of a healthy one
};

/// One plan of training on `nodes` nodes of `ranks_per_node` ranks each.
///
/// Replicas whose nodes are all healthy do the same at the same time, so one of them is walked in place of all: the
/// walk takes as long as the replicas that differ. The speeds are made up: a rank moves one byte in the time of
/// kFlopPerByte operations.
class TrainingModel {
 public:
  static constexpr double kFlopPerByte = 1000;

  /// The model that a probe's parameters describe; nothing if they are not those of a training step of a built-in
  /// model, or do not divide it among the ranks.
  static std::optional<TrainingModel> of(const Parameters& parameters, std::size_t nodes, std::size_t ranks_per_node);

  [[nodiscard]] TrainingShares walk(const NodeSpeeds& speeds) const;
  [[nodiscard]] std::size_t ranks_per_node() const { return ranks_per_node_; }
  /// The two ranks of each edge, in the order of TrainingShares::edge_time.
  [[nodiscard]] const std::vector<std::pair<std::size_t, std::size_t>>& edges() const { return edges_; }

 private:
  TrainingModel(const train::RankJob& job, std::size_t nodes, std::size_t ranks_per_node);
  [[nodiscard]] std::vector<std::int64_t> walked_replicas(const NodeSpeeds& speeds) const;

  train::RankJob job_;
  std::size_t nodes_, ranks_per_node_;
  std::vector<std::pair<std::size_t, std::size_t>> edges_;  ///< ranks of the whole plan
};

}  // namespace assay::simulate
