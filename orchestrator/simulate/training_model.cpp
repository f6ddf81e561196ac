// training_model: the graph of a step with fewer replicas, each operation as slow as the nodes it runs on.
#include "orchestrator/simulate/training_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "workloads/train/graph/plan_parameters.h"
#include "workloads/train/graph/step_edges.h"
#include "workloads/train/graph/virtual_time.h"

namespace assay::simulate {
namespace {

using train::Op;
using train::ParallelPlan;

/// The parts of a step that are walked apart, as the probe times them apart.
enum class Part { full, compute, comm };

bool is_built_in(const std::string& model) {
  return std::ranges::any_of(train::presets(), [&](const auto& preset) { return preset.name == model; });
}

/// Time of an operation on a healthy rank, in units of one FLOP.
double healthy_time(const Op& op) {
  if (op.kind == train::OpKind::collective) return static_cast<double>(op.bytes) * TrainingModel::kFlopPerByte;
  return static_cast<double>(std::max(op.flop, op.bytes));
}

/// A plan of some of the replicas, and which rank of the whole each of its ranks is.
class Walked {
 public:
  Walked(const train::RankJob& job, const std::vector<std::int64_t>& replicas) : whole_(job.plan), plan_(job.plan) {
    plan_.dp = static_cast<std::int64_t>(replicas.size());
    for (std::int64_t rank = 0; rank < plan_.world(); ++rank) {
      auto at = train::position_of(plan_, rank);
      at.dp = replicas[train::sized(at.dp)];
      ranks_.push_back(train::sized(train::rank_at(whole_, at)));
      graphs_.push_back(train::step_graph(job.model, plan_, rank));
      for (Op& op : graphs_.back()) op.beside = op.beside && job.beside;
    }
  }

  [[nodiscard]] const ParallelPlan& plan() const { return plan_; }
  [[nodiscard]] const std::vector<std::vector<Op>>& graphs() const { return graphs_; }
  [[nodiscard]] std::size_t rank_of_whole(std::size_t walked) const { return ranks_[walked]; }
  [[nodiscard]] std::size_t ranks() const { return ranks_.size(); }

 private:
  ParallelPlan whole_, plan_;
  std::vector<std::size_t> ranks_;
  std::vector<std::vector<Op>> graphs_;
};

/// How slow the messages of each group are, and each node.
class Slowness {
 public:
  Slowness(const Walked& walked, const NodeSpeeds& speeds, std::size_t ranks_per_node)
      : walked_(walked), speeds_(speeds), per_node_(ranks_per_node) {}

  [[nodiscard]] std::size_t node_of(std::size_t walked) const { return walked_.rank_of_whole(walked) / per_node_; }
  [[nodiscard]] double of_node(std::size_t walked) const { return 1 / speeds_.nodes[node_of(walked)]; }

  /// Of the collective `op` of rank `walked`: of the slowest way between its members.
  double of_messages(std::size_t walked, const Op& op) {
    if (speeds_.links.empty()) return 1;
    const bool message = op.motion == train::Motion::send || op.motion == train::Motion::receive;
    if (message) return between({node_of(walked), node_of(train::sized(op.peer))});
    const auto [known, is_new] = groups_.try_emplace({op.group, walked}, 1);
    if (is_new) {
      std::set<std::size_t> members;
      for (const auto member : train::members_of(walked_.plan(), op.group, static_cast<std::int64_t>(walked)))
        members.insert(node_of(train::sized(member)));
      known->second = between(members);
    }
    return known->second;
  }

 private:
  [[nodiscard]] double between(const std::set<std::size_t>& members) const {
    double slowest = 1;
    for (const auto& [ends, left] : speeds_.links) {
      if (members.contains(ends.first) && members.contains(ends.second)) slowest = std::max(slowest, 1 / left);
    }
    return slowest;
  }

  const Walked& walked_;
  const NodeSpeeds& speeds_;
  std::size_t per_node_;
  std::map<std::pair<train::Group, std::size_t>, double> groups_;
};

double time_of(const Walked& walked, Slowness& slow, Part part) {
  const train::Duration duration = [&](std::size_t rank, const Op& op, bool) {
    const bool message = op.kind == train::OpKind::collective;
    if ((message && part == Part::compute) || (!message && part == Part::comm)) return 0.0;
    return healthy_time(op) * (message ? slow.of_messages(rank, op) : slow.of_node(rank));
  };
  return train::walk(walked.plan(), walked.graphs(), duration).total_s;
}

double over(double time, double healthy) { return healthy > 0 ? time / healthy : 1; }

}  // namespace

std::optional<TrainingModel> TrainingModel::of(const Parameters& parameters, std::size_t nodes,
                                               std::size_t ranks_per_node) {
  const auto& values = parameters.values();
  for (const Parameter& one : train::kPlanParameters) {
    if (!values.contains(std::string(one.name))) return std::nullopt;
  }
  if (!is_built_in(parameters.text("model"))) return std::nullopt;
  try {
    auto job = train::job_on(parameters, static_cast<std::int64_t>(nodes * ranks_per_node));
    const auto overlap = values.find(std::string(train::kOverlapParameter.name));
    job.beside = overlap == values.end() || parameters.text("overlap") == "beside";
    return TrainingModel(job, nodes, ranks_per_node);
  } catch (const BadParameter&) {  // the probe would refuse these ranks: its figures are made up without a graph
    return std::nullopt;
  }
}

TrainingModel::TrainingModel(const train::RankJob& job, std::size_t nodes, std::size_t ranks_per_node)
    : job_(job), nodes_(nodes), ranks_per_node_(ranks_per_node) {
  for (const auto& edge : train::edges_of(job_.plan, static_cast<std::int64_t>(ranks_per_node)))
    edges_.emplace_back(train::sized(edge.one), train::sized(edge.other));
}

/// Those with a node or an end of a link that is slow, and healthy ones: one, and as many as groups of experts ask for.
std::vector<std::int64_t> TrainingModel::walked_replicas(const NodeSpeeds& speeds) const {
  std::set<std::size_t> slow;
  for (std::size_t node = 0; node < nodes_; ++node) {
    if (speeds.nodes[node] < 1) slow.insert(node);
  }
  for (const auto& [ends, left] : speeds.links) slow.insert({ends.first, ends.second});
  std::vector<std::int64_t> all, healthy;
  std::set<std::int64_t> chosen;
  for (std::int64_t rank = 0; rank < job_.plan.world(); ++rank) {
    if (slow.contains(train::sized(rank) / ranks_per_node_)) chosen.insert(train::position_of(job_.plan, rank).dp);
  }
  if (job_.plan.ep > 1) {  // experts are where their replicas are: none may be left out
    for (std::int64_t dp = 0; dp < job_.plan.dp; ++dp) all.push_back(dp);
    return all;
  }
  constexpr std::size_t kHealthy = 2;  // so that gradients are reduced among some
  for (std::int64_t dp = 0; dp < job_.plan.dp && healthy.size() < kHealthy; ++dp) {
    if (!chosen.contains(dp)) healthy.push_back(dp);
  }
  chosen.insert(healthy.begin(), healthy.end());
  return {chosen.begin(), chosen.end()};
}

TrainingShares TrainingModel::walk(const NodeSpeeds& speeds) const {
  const Walked walked(job_, walked_replicas(speeds));
  const NodeSpeeds healthy{.nodes = std::vector<double>(nodes_, 1)};
  Slowness slow(walked, speeds, ranks_per_node_), none(walked, healthy, ranks_per_node_);
  const auto share = [&](Part part) { return over(time_of(walked, slow, part), time_of(walked, none, part)); };
  TrainingShares found{.step = share(Part::full), .compute = share(Part::compute), .comm = share(Part::comm)};
  const auto world = train::sized(job_.plan.world());
  for (std::size_t rank = 0; rank < world; ++rank) found.self_time.push_back(1 / speeds.nodes[rank / ranks_per_node_]);
  const auto place = static_cast<std::ptrdiff_t>(world / train::sized(job_.plan.pp));
  for (auto first = found.self_time.cbegin(); first != found.self_time.cend(); first += place) {
    const std::vector<double> times(first, first + place);
    const auto shares = train::ratio_to_others(times);
    found.self_share.insert(found.self_share.end(), shares.begin(), shares.end());
    const double longest = std::ranges::max(times);
    const auto last = static_cast<double>(std::ranges::count(times, longest));
    for (const double time : times) found.last_share.push_back(time == longest ? 1 / last : 0);
  }
  for (const auto& [one, other] : edges_) {
    double time = 1;
    const std::size_t a = one / ranks_per_node_, b = other / ranks_per_node_;
    for (const auto& [ends, left] : speeds.links) {
      if (ends == std::pair(std::min(a, b), std::max(a, b))) time = std::max(time, 1 / left);
    }
    found.edge_time.push_back(time);
  }
  return found;
}

}  // namespace assay::simulate
