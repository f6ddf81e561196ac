// expert_routes: which experts each token goes to, and in which order its copies are sent and sorted.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/train/engine/step_values.h"
#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// The ways of one micro-batch through one layer of experts, on one rank. A copy is a token for one of its experts.
/// They follow from a token's place in the step and not from the router's output: so every division of a step routes
/// alike, and each rank knows how much it gets. A router's numbers weight the results.
struct ExpertRoute {
  std::vector<std::size_t> copies;          ///< in the order in which they are sent: token x top_k + choice
  std::vector<std::size_t> experts;         ///< of each of them
  std::vector<std::size_t> sent, received;  ///< copies to, and from, each member of the ep group
  std::vector<std::size_t> places;          ///< of each received copy, by sender: its row among those sorted by expert
  std::vector<std::size_t> begins;          ///< first row of each expert of this rank, and the end
  /// Rows that this rank's experts have.
  [[nodiscard]] std::size_t rows() const { return begins.back(); }
};

/// The experts of one token, all different, from random bits of its place in the step: `chosen` has top_k places.
void choose_experts(const Experts& experts, std::int64_t layer, std::uint64_t token, std::vector<std::size_t>& chosen);

/// Routes of all layers with experts and micro-batches.
class ExpertRoutes {
 public:
  ExpertRoutes() = default;
  /// Of the layers of `rank`. `replicated`: all replicas have the tokens of the first.
  ExpertRoutes(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank, bool replicated);

  [[nodiscard]] const ExpertRoute& at(std::int64_t layer, std::int64_t micro_batch) const {
    return routes_[sized(layer)][sized(micro_batch)];
  }
  /// Most rows of a micro-batch in `layer`.
  [[nodiscard]] std::size_t most_rows(std::int64_t layer) const;

 private:
  std::vector<std::vector<ExpertRoute>> routes_;  ///< [layer][micro-batch]; empty if a layer is not here
};

/// Numbers that a rank sends to, and gets from, each member of its ep group.
struct ExchangeCounts {
  std::vector<std::size_t> to, from;
};
/// Those of the all_to_all `op` of one layer and micro-batch, whose copies have `width` numbers each.
ExchangeCounts exchange_counts(const Op& op, const ExpertRoute& route, std::size_t width);

/// Whether something is done with copies or a router's numbers before and after the collective `op`.
bool is_of_experts(const ModelShape& model, const Op& op);

/// The tokens of step `number` on the rank of `job`.
TokenDraw tokens_of_step(const RankJob& job, std::uint64_t number);

}  // namespace assay::train
