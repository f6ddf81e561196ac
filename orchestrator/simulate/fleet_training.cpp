// fleet_training: the figures of training steps, by the graph of their operations.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/simulate/fleet_model.h"
#include "orchestrator/simulate/simulate.h"
#include "workloads/train/graph/step_edges.h"

namespace assay::simulate {
namespace {

// Faults of these metrics, and those of every metric, slow a node's computation and a link's messages.

/// Figures of ranks that are shares of others already, and those that are times.
struct RankMetric {
  std::string_view metric;
  std::vector<double> TrainingShares::*values;
  bool is_share;
};
constexpr RankMetric kRankMetrics[] = {{"self_time", &TrainingShares::self_time, false},
                                       {"self_share", &TrainingShares::self_share, true},
                                       {"last_share", &TrainingShares::last_share, true}};
/// Figures of the whole step.
struct StepMetric {
  std::string_view metric;
  double TrainingShares::*time;
  bool is_rate;
};
constexpr StepMetric kStepMetrics[] = {{"step_time", &TrainingShares::step, false},
                                       {"tokens_rate", &TrainingShares::step, true},
                                       {"model_flop_rate", &TrainingShares::step, true},
                                       {"compute_time", &TrainingShares::compute, false},
                                       {"comm_time", &TrainingShares::comm, false}};

/// A rank as the probe names it.
std::string rank_name(const plan::Step& step, const TrainingModel& model, std::size_t rank) {
  const std::size_t here = model.ranks_per_node();
  return step.nodes[rank / here] + (here > 1 ? fmt::format(" rank {}", rank % here) : "");
}

}  // namespace

const TrainingModel* FleetModel::training_of(const plan::Step& step) const {
  const std::lock_guard lock(walking_);
  const auto [known, is_new] = trainings_.try_emplace({step.requirements.front(), step.nodes.size()});
  if (is_new) {
    const Parameters parameters(plan::parameters_of(plan_.site, step, 0));
    const bool says = parameters.values().contains("ranks_per_node");
    const int gpus = plan::designed_parts(plan_.profile, *nodes_.at(step.nodes.front()), "gpu").value_or(1);
    const auto here = says ? parameters.count("ranks_per_node") : gpus;
    if (here > 0) known->second = TrainingModel::of(parameters, step.nodes.size(), static_cast<std::size_t>(here));
  }
  return known->second ? &*known->second : nullptr;
}

const TrainingShares& FleetModel::shares_of(const TrainingModel& model, const plan::Step& step,
                                            const std::string& occasion) const {
  NodeSpeeds speeds{.nodes = std::vector<double>(step.nodes.size(), 1)};
  std::string key;
  for (std::size_t node = 0; node < step.nodes.size(); ++node) {
    const auto faults = faults_of_.find(step.nodes[node]);
    if (faults == faults_of_.end()) continue;
    speeds.nodes[node] = share_left({step.nodes[node]}, kComputation, occasion, false);
    key += fmt::format("{}:{} ", node, speeds.nodes[node]);
    for (const auto* fault : faults->second) {
      const auto other = std::ranges::find(step.nodes, fault->other);
      if (other == step.nodes.end()) continue;
      const auto end = static_cast<std::size_t>(other - step.nodes.begin());
      const double left = share_left({step.nodes[node], fault->other}, kMessages, occasion, false);
      speeds.links.push_back({{std::min(node, end), std::max(node, end)}, left});
      key += fmt::format("{}-{}:{} ", node, end, left);
    }
  }
  const std::lock_guard lock(walking_);
  const auto [known, is_new] = walked_.try_emplace({&model, key});
  if (is_new) known->second = model.walk(speeds);
  return known->second;
}

bool FleetModel::record_training(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                                 const std::string& occasion) const {
  const auto of_ranks = std::ranges::find(kRankMetrics, quantity.metric, &RankMetric::metric);
  const auto of_step = std::ranges::find(kStepMetrics, quantity.metric, &StepMetric::metric);
  const bool of_edges = quantity.metric == "edge_time" || quantity.metric == "edge_share";
  if (of_ranks == std::end(kRankMetrics) && of_step == std::end(kStepMetrics) && !of_edges) return false;
  const TrainingModel* const model = training_of(step);
  if (model == nullptr) return false;
  const TrainingShares& shares = shares_of(*model, step, occasion);
  const auto record = [&](const std::string& id, double centre, double share) {
    record_samples(recorder, quantity, {.kind = "group", .id = id}, centre, occasion,
                   [&](double healthy) { return healthy * share; });
  };
  if (of_step != std::end(kStepMetrics)) {
    const double named = share_left(step.nodes, quantity.metric, occasion, true);
    const double time = shares.*of_step->time / named;
    record(step.id, quantity.centre_on(step.nodes.size()), of_step->is_rate ? 1 / time : time);
  } else if (of_ranks != std::end(kRankMetrics)) {
    const auto& values = shares.*of_ranks->values;
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      const double named = share_left({step.nodes[rank / model->ranks_per_node()]}, quantity.metric, occasion, true);
      record(rank_name(step, *model, rank), of_ranks->is_share ? 1 : quantity.centre, values[rank] / named);
    }
  } else {
    const auto edge_shares = train::edge_shares(shares.edge_time);
    for (std::size_t i = 0; i < model->edges().size(); ++i) {
      const auto [one, other] = model->edges()[i];
      const std::string id = rank_name(step, *model, one) + "+" + rank_name(step, *model, other);
      if (quantity.metric == "edge_time")
        record(id, quantity.centre, shares.edge_time[i]);
      else if (edge_shares)
        record(id, 1, (*edge_shares)[i]);
    }
  }
  return true;
}

}  // namespace assay::simulate
