// train_run: exactness before, rounds of full, compute-only and communication-only steps, exactness after.
#include "workloads/train/train_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/statistics.h"
#include "workloads/train/plan_parameters.h"
#include "workloads/train/rank_job.h"
#include "workloads/train/step_evidence.h"
#include "workloads/train/step_timeline.h"
#include "workloads/train/training.h"
#include "workloads/train/virtual_time.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::int64_t kMostSteps = 1'000'000, kMostWarmup = 1000, kMostBlock = 1000, kMostProjected = 1 << 20;

constexpr std::size_t kMostTimelines = 24;  // ranks of a figure

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

/// One run.
class TimedTraining {
 public:
  TimedTraining(Fleet& fleet, const Parameters& given, const RankJob& job, const std::vector<std::string>& names,
                Recorder& record)
      : fleet_(fleet),
        training_(fleet, given, job),
        given_(given),
        job_(job),
        names_(names),
        plan_(job.plan),
        record_(record),
        ranks_(fleet.ranks()),
        edges_(edges_of(job.plan, static_cast<std::int64_t>(fleet.ranks_per_node()))),
        edge_time_(edges_.size()),
        edge_share_(edges_.size()) {
    if (fleet.nodes().size() > 1) subject_ = {.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))};
  }

  Answers run(const std::function<void(const Answers&)>& entered) {
    training_.meet(entered);
    training_.check_exact("before");
    training_.prepare();
    time();
    if (plan_.world() > 1) timeline_ = training_.timeline();
    training_.settle();
    training_.check_exact("after");
    return conclude();
  }

 private:
  void time() {
    const std::int64_t block = given_.count("block"), rounds = given_.count("steps") / block;
    warmup_ = longest(training_.steps(Variant::full, given_.count("warmup_steps")), &RankSteps::wall);
    for (std::int64_t round = 0; round < rounds; ++round) {
      if (job_.data == DataMode::replicated) training_.vote();
      time_edges();
      share_groups();
      const std::int64_t part = std::max<std::int64_t>(3, block / 2);
      const auto compute = training_.steps(Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? training_.steps(Variant::comm_only, part) : std::vector<RankSteps>(1);
      take_round(compute, comm, energetic_block(block));
    }
  }

  /// The ways between nodes, while nothing else uses them.
  void time_edges() {
    if (edges_.empty()) return;
    const auto times = training_.edge_times(edges_);
    const auto shares = edge_shares(times);
    for (std::size_t i = 0; i < times.size(); ++i) {
      edge_time_[i].push_back(times[i]);
      if (shares) edge_share_[i].push_back((*shares)[i]);
    }
  }

  void share_groups() {
    if (group_kinds(plan_).size() < 2) return;
    const auto shares = training_.group_shares();
    for (const std::size_t kind : group_kinds(plan_)) group_share_[kind].push_back(shares[kind]);
  }

  /// Full steps, and what the packages of all nodes took meanwhile.
  std::vector<RankSteps> energetic_block(std::int64_t count) {
    const std::string root = given_.text("root");
    const auto before = training_.energies(root);
    const auto begin = std::chrono::steady_clock::now();
    auto steps = training_.steps(Variant::full, count);
    const auto after = training_.energies(root);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    for (std::size_t node = 0; node < before.size(); ++node) {
      const auto taken_j = before[node] && after[node]
                               ? energy_between_j(*before[node], *after[node], time.count())
                               : std::nullopt;
      energy_j_ = energy_j_ && taken_j ? std::optional(*energy_j_ + *taken_j) : std::nullopt;
    }
    return steps;
  }

  void take_round(const std::vector<RankSteps>& compute, const std::vector<RankSteps>& comm,
                  const std::vector<RankSteps>& full) {
    const auto wall = longest(full, &RankSteps::wall);
    append(step_, wall);
    append(optimizer_, longest(full, &RankSteps::optimizer));
    const auto all = standings(plan_, full);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      append(ranks_[rank].self_time, all[rank].self_time);
      append(ranks_[rank].lateness, all[rank].lateness);
      ranks_[rank].last_share.push_back(all[rank].last_share);
      if (all[rank].self_share) ranks_[rank].self_share.push_back(*all[rank].self_share);
    }
    const double full_s = median(wall), compute_s = median(longest(compute, &RankSteps::wall));
    compute_.push_back(compute_s);
    composition_.push_back(moments(wall).mean / predicted_step(job_.model, plan_, compute, comm, job_.beside));
    if (plan_.world() == 1) return;
    const double comm_s = median(longest(comm, &RankSteps::wall));
    comm_.push_back(comm_s);
    exposed_.push_back(full_s - compute_s);
    if (const auto overlap = overlap_efficiency(full_s, compute_s, comm_s)) overlap_.push_back(*overlap);
  }

  Answers conclude() {
    Answers facts = training_.facts();
    for (const auto& finding : training_.findings()) record_.note(finding);
    record_.measurement("step_time", {.samples = step_, .warmup = warmup_, .stopped = "fixed"}, subject_);
    record_.measurement("compute_time", fixed(compute_), subject_);
    record_.measurement("optimizer_time", fixed(optimizer_), subject_);
    record_.measurement("composition", fixed(composition_), subject_);
    record_.measurement("tail_share", tail_share(step_), subject_);
    record_.measurement("mismatches", static_cast<double>(training_.mismatches()), subject_);
    record_projection();
    record_rates();
    if (plan_.world() > 1) record_communication();
    record_conditions(facts);
    return facts;
  }

  /// The tail of a job of more ranks, where each stalls as often as here.
  void record_projection() {
    const std::int64_t ranks = given_.count("project_ranks");
    if (ranks == 0) return;
    const double more = static_cast<double>(ranks) / static_cast<double>(plan_.world());
    const double share = tail_share(step_);
    const auto beyond = static_cast<std::size_t>(std::llround(share * static_cast<double>(step_.size())));
    record_.measurement("tail_share_projected", projected_share(share, more), subject_);
    record_.measurement("tail_share_projected_bound", projected_share(share_bound(step_.size(), beyond), more),
                        subject_);
  }

  /// Exact arithmetic moves few bits: a rate of it would flatter.
  void record_rates() {
    if (job_.data == DataMode::ring) return;
    const auto rate = [&](const char* metric, double amount) {
      Sampling values = fixed(step_);
      values.warmup = warmup_;
      for (auto* list : {&values.samples, &values.warmup}) {
        for (double& value : *list) value = amount / value;
      }
      record_.measurement(metric, values, subject_);
    };
    const ModelShape run = with_layers(job_.model, plan_.layers);
    const auto tokens = static_cast<double>(plan_.tokens_per_step());
    rate("tokens_rate", tokens);
    if (energy_j_)
      record_.measurement("energy_per_token", *energy_j_ / (tokens * static_cast<double>(step_.size())), subject_);
    rate("model_flop_rate", tokens * static_cast<double>(flop_per_token(run, plan_.seq)));
  }

  void record_communication() {
    record_.measurement("comm_time", fixed(comm_), subject_);
    record_.measurement("exposed_comm", fixed(exposed_), subject_);
    if (!overlap_.empty()) record_.measurement("overlap", fixed(overlap_), subject_);
    record_edges();
    record_timeline();
    for (const std::size_t kind : group_kinds(plan_)) {
      if (group_share_[kind].empty()) continue;
      record_.measurement("group_share", fixed(group_share_[kind]), subject_,
                          {{"group", std::string(kGroupWords.at(kind))}});
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Subject subject = subject_of(rank);
      record_.measurement("self_time", fixed(ranks_[rank].self_time), subject);
      record_.measurement("lateness", fixed(ranks_[rank].lateness), subject);
      record_.measurement("last_share", fixed(ranks_[rank].last_share), subject);
      if (!ranks_[rank].self_share.empty()) record_.measurement("self_share", fixed(ranks_[rank].self_share), subject);
    }
  }

  void record_timeline() {
    for (std::size_t rank = 0; rank < std::min(timeline_.size(), kMostTimelines); ++rank) {
      for (std::size_t activity = 0; activity < kActivities.size(); ++activity) {
        if (timeline_[rank].at(activity).empty()) continue;
        record_.measurement("timeline", fixed(timeline_[rank][activity]), subject_of(rank),
                            {{"activity", std::string(kActivities.at(activity))}});
      }
    }
  }

  void record_edges() {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Subject subject = {.kind = "group",
                               .id = name_of(sized(edges_[i].one)) + "+" + name_of(sized(edges_[i].other))};
      record_.measurement("edge_time", fixed(edge_time_[i]), subject);
      if (!edge_share_[i].empty()) record_.measurement("edge_share", fixed(edge_share_[i]), subject);
    }
  }

  [[nodiscard]] Subject subject_of(std::size_t rank) const {
    if (fleet_.nodes().size() > 1) return {.kind = "group", .id = name_of(rank)};
    return {.kind = "rank", .id = fmt::format("{}", rank)};
  }

  /// A rank by its node, and by its number there where there are several.
  [[nodiscard]] std::string name_of(std::size_t rank) const {
    const std::size_t here = fleet_.ranks_per_node();
    return names_[rank / here] + (here > 1 ? fmt::format(" rank {}", rank % here) : "");
  }

  void record_conditions(const Answers& facts) {
    record_.condition("off_cpu_share", training_.off_cpu());
    record_.condition("blas_library", facts.front().at("blas").get<std::string>());
    record_.condition("blas_core", facts.front().at("core").get<std::string>());
  }

  Fleet& fleet_;
  Training training_;
  const Parameters& given_;
  const RankJob& job_;
  const std::vector<std::string>& names_;  ///< of the nodes, unlike each other
  const ParallelPlan& plan_;
  Recorder& record_;
  Subject subject_;
  std::vector<double> warmup_, step_, optimizer_, compute_, comm_, exposed_, overlap_, composition_;
  /// What each rank was in every step, and in every round.
  struct RankFigures {
    std::vector<double> self_time, lateness, last_share, self_share;
  };
  std::vector<RankFigures> ranks_;
  std::optional<double> energy_j_ = 0;                       ///< of all full steps; nothing once a node has none
  std::array<std::vector<double>, kGroupKinds.size()> group_share_;  ///< of every round
  std::vector<std::vector<std::vector<double>>> timeline_;           ///< by rank and activity
  std::vector<Edge> edges_;                                ///< between nodes
  std::vector<std::vector<double>> edge_time_, edge_share_;  ///< by edge, of every round
};

}  // namespace

RankJob job_of(const Parameters& given, std::int64_t ranks) {
  RankJob job = job_on(given, ranks);
  (void)count_in_range(given, "warmup_steps", 1, kMostWarmup);
  const auto block = count_in_range(given, "block", 2, kMostBlock);
  (void)count_in_range(given, "steps", block, kMostSteps);
  if (given.count("project_ranks") != 0)
    (void)count_in_range(given, "project_ranks", job.plan.world(), kMostProjected);
  job.data = data_mode_named(given.text("data"));
  job.beside = given.text("overlap") == "beside";
  return job;
}

std::vector<json> conduct_training(Fleet& fleet, const Parameters& given, const RankJob& job,
                                   const std::vector<std::string>& names,
                                   const std::function<void(const std::vector<json>&)>& entered, Recorder& record) {
  return TimedTraining(fleet, given, job, names, record).run(entered);
}

}  // namespace assay::train
