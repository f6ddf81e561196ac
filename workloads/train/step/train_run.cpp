// train_run: exactness before, rounds of full, compute-only and communication-only steps, exactness after.
#include "workloads/train/step/train_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "probes/core/small_samples.h"
#include "workloads/train/graph/plan_parameters.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train/step/step_figures.h"
#include "workloads/train/step/step_timeline.h"
#include "workloads/train/step/training.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::int64_t kMostSteps = 1'000'000, kMostWarmup = 1000, kMostBlock = 1000, kMostProjected = 1 << 20;

constexpr std::size_t kMostTimelines = 24;  // ranks of a figure

/// One run.
class TimedTraining {
 public:
  TimedTraining(collective::Fleet& fleet, const Parameters& given, const RankJob& job,
                const std::vector<std::string>& names, Recorder& record)
      : fleet_(fleet),
        training_(fleet, given, job),
        given_(given),
        job_(job),
        plan_(job.plan),
        record_(record),
        subjects_(names, fleet.ranks_per_node()),
        figures_(job),
        edges_(edges_of(job.plan, static_cast<std::int64_t>(fleet.ranks_per_node()))),
        edge_time_(edges_.size()),
        edge_share_(edges_.size()) {}

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
    figures_.take_warmup(training_.steps(Variant::full, given_.count("warmup_steps")));
    for (std::int64_t round = 0; round < rounds; ++round) {
      if (job_.data == DataMode::replicated) training_.vote();
      time_edges();
      share_groups();
      const std::int64_t part = std::max<std::int64_t>(3, block / 2);
      const auto compute = training_.steps(Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? training_.steps(Variant::comm_only, part) : std::vector<RankSteps>(1);
      figures_.take_round(compute, comm, energetic_block(block));
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

  /// Full steps, and the energy of all nodes' packages meanwhile.
  std::vector<RankSteps> energetic_block(std::int64_t count) {
    const std::string root = given_.text("root");
    const auto before = training_.energies(root);
    const auto begin = std::chrono::steady_clock::now();
    auto steps = training_.steps(Variant::full, count);
    const auto after = training_.energies(root);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    for (std::size_t node = 0; node < before.size(); ++node) {
      const auto taken_j =
          before[node] && after[node] ? energy_between_j(*before[node], *after[node], time.count()) : std::nullopt;
      energy_j_ = energy_j_ && taken_j ? std::optional(*energy_j_ + *taken_j) : std::nullopt;
    }
    return steps;
  }

  Answers conclude() {
    Answers facts = training_.facts();
    for (const auto& finding : training_.findings()) record_.note(finding);
    figures_.record(subjects_, record_);
    record_.measurement("mismatches", static_cast<double>(training_.mismatches()), subjects_.all());
    record_projection();
    record_energy();
    if (plan_.world() > 1) record_ways();
    record_conditions(facts);
    return facts;
  }

  /// The tail of a job of more ranks, where each stalls as often as here.
  void record_projection() {
    const std::int64_t ranks = given_.count("project_ranks");
    if (ranks == 0) return;
    const double more = static_cast<double>(ranks) / static_cast<double>(plan_.world());
    const double share = tail_share(figures_.steps());
    constexpr double kConfidence = 0.95;
    const auto beyond = static_cast<std::size_t>(std::llround(share * static_cast<double>(figures_.steps().size())));
    record_.measurement("tail_share_projected", projected_share(share, more), subjects_.all());
    record_.measurement("tail_share_projected_bound",
                        projected_share(share_at_most(figures_.steps().size(), beyond, kConfidence), more),
                        subjects_.all());
  }

  void record_energy() {
    if (job_.data == DataMode::ring || !energy_j_) return;
    const auto tokens = static_cast<double>(plan_.tokens_per_step()) * static_cast<double>(figures_.steps().size());
    record_.measurement("energy_per_token", *energy_j_ / tokens, subjects_.all());
  }

  /// Of several ranks: the paths between them, and the timeline of each.
  void record_ways() {
    record_edges();
    record_timeline();
    for (const std::size_t kind : group_kinds(plan_)) {
      if (group_share_[kind].empty()) continue;
      record_.measurement("group_share", fixed(group_share_[kind]), subjects_.all(),
                          {{"group", std::string(kGroupWords.at(kind))}});
    }
  }

  void record_timeline() {
    for (std::size_t rank = 0; rank < std::min(timeline_.size(), kMostTimelines); ++rank) {
      for (std::size_t activity = 0; activity < kActivities.size(); ++activity) {
        if (timeline_[rank].at(activity).empty()) continue;
        record_.measurement("timeline", fixed(timeline_[rank][activity]), subjects_.of(rank),
                            {{"activity", std::string(kActivities.at(activity))}});
      }
    }
  }

  void record_edges() {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Subject subject = {
          .kind = "group",
          .id = subjects_.name_of(sized(edges_[i].one)) + "+" + subjects_.name_of(sized(edges_[i].other))};
      record_.measurement("edge_time", fixed(edge_time_[i]), subject);
      if (!edge_share_[i].empty()) record_.measurement("edge_share", fixed(edge_share_[i]), subject);
    }
  }

  void record_conditions(const Answers& facts) {
    record_.condition("off_cpu_share", training_.off_cpu());
    record_.condition("blas_library", facts.front().at("blas").get<std::string>());
    record_.condition("blas_core", facts.front().at("core").get<std::string>());
  }

  collective::Fleet& fleet_;
  Training training_;
  const Parameters& given_;
  const RankJob& job_;
  const ParallelPlan& plan_;
  Recorder& record_;
  RankSubjects subjects_;
  StepFigures figures_;
  std::optional<double> energy_j_ = 0;  ///< of all full steps; nothing once a node has none
  std::array<std::vector<double>, kGroupKinds.size()> group_share_;  ///< of every round
  std::vector<std::vector<std::vector<double>>> timeline_;           ///< by rank and activity
  std::vector<Edge> edges_;                                          ///< between nodes
  std::vector<std::vector<double>> edge_time_, edge_share_;          ///< by edge, of every round
};

}  // namespace

RankJob job_of(const Parameters& given, std::int64_t ranks) {
  RankJob job = job_on(given, ranks);
  (void)count_in_range(given, "warmup_steps", 1, kMostWarmup);
  const auto block = count_in_range(given, "block", 2, kMostBlock);
  (void)count_in_range(given, "steps", block, kMostSteps);
  if (given.count("project_ranks") != 0) (void)count_in_range(given, "project_ranks", job.plan.world(), kMostProjected);
  job.data = data_mode_named(given.text("data"));
  job.beside = given.text("overlap") == "beside";
  return job;
}

std::vector<json> conduct_training(collective::Fleet& fleet, const Parameters& given, const RankJob& job,
                                   const std::vector<std::string>& names,
                                   const std::function<void(const std::vector<json>&)>& entered, Recorder& record) {
  return TimedTraining(fleet, given, job, names, record).run(entered);
}

}  // namespace assay::train
