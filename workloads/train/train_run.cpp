// train_run: exactness before, rounds of full, compute-only and communication-only steps, exactness after.
#include "workloads/train/train_run.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/statistics.h"
#include "workloads/train/plan_parameters.h"
#include "workloads/train/rank_job.h"
#include "workloads/train/step_evidence.h"
#include "workloads/train/training.h"
#include "workloads/train/virtual_time.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::int64_t kMostSteps = 1'000'000, kMostWarmup = 1000, kMostBlock = 1000;

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
        ranks_(fleet.ranks()) {
    if (fleet.nodes().size() > 1) subject_ = {.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))};
  }

  Answers run(const std::function<void(const Answers&)>& entered) {
    training_.meet(entered);
    training_.check_exact("before");
    training_.prepare();
    time();
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
      const std::int64_t part = std::max<std::int64_t>(3, block / 2);
      const auto compute = training_.steps(Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? training_.steps(Variant::comm_only, part) : std::vector<RankSteps>(1);
      take_round(compute, comm, training_.steps(Variant::full, block));
    }
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
    record_rates();
    if (plan_.world() > 1) record_communication();
    record_conditions(facts);
    return facts;
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
    rate("model_flop_rate", tokens * static_cast<double>(flop_per_token(run, plan_.seq)));
  }

  void record_communication() {
    record_.measurement("comm_time", fixed(comm_), subject_);
    record_.measurement("exposed_comm", fixed(exposed_), subject_);
    if (!overlap_.empty()) record_.measurement("overlap", fixed(overlap_), subject_);
    const std::size_t here = fleet_.ranks_per_node();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Subject subject{.kind = "rank", .id = fmt::format("{}", rank)};
      if (fleet_.nodes().size() > 1)
        subject = {.kind = "group", .id = names_[rank / here] + (here > 1 ? fmt::format(" rank {}", rank % here) : "")};
      record_.measurement("self_time", fixed(ranks_[rank].self_time), subject);
      record_.measurement("lateness", fixed(ranks_[rank].lateness), subject);
      record_.measurement("last_share", fixed(ranks_[rank].last_share), subject);
      if (!ranks_[rank].self_share.empty()) record_.measurement("self_share", fixed(ranks_[rank].self_share), subject);
    }
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
};

}  // namespace

RankJob job_of(const Parameters& given, std::int64_t ranks) {
  RankJob job = job_on(given, ranks);
  (void)count_in_range(given, "warmup_steps", 1, kMostWarmup);
  const auto block = count_in_range(given, "block", 2, kMostBlock);
  (void)count_in_range(given, "steps", block, kMostSteps);
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
