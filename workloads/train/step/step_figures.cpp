// step_figures: records medians of rounds, and every step where a record has room for it.
#include "workloads/train/step/step_figures.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/statistics.h"
#include "workloads/train/graph/virtual_time.h"

namespace assay::train {
namespace {

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

RankSubjects::RankSubjects(std::vector<std::string> nodes, std::size_t ranks_per_node)
    : nodes_(std::move(nodes)), ranks_per_node_(ranks_per_node) {
  if (nodes_.size() > 1) all_ = {.kind = "group", .id = fmt::format("{}", fmt::join(nodes_, ","))};
}

std::string RankSubjects::name_of(std::size_t rank) const {
  const std::size_t here = ranks_per_node_;
  return nodes_[rank / here] + (here > 1 ? fmt::format(" rank {}", rank % here) : "");
}

Subject RankSubjects::of(std::size_t rank) const {
  if (nodes_.size() > 1) return {.kind = "group", .id = name_of(rank)};
  return {.kind = "rank", .id = fmt::format("{}", rank)};
}

StepFigures::StepFigures(const RankJob& job) : job_(job), ranks_(sized(job.plan.world())) {}

void StepFigures::take_warmup(const std::vector<RankSteps>& full) { append(warmup_, longest(full, &RankSteps::wall)); }

void StepFigures::take_round(const std::vector<RankSteps>& compute, const std::vector<RankSteps>& comm,
                             const std::vector<RankSteps>& full) {
  const auto wall = longest(full, &RankSteps::wall);
  append(step_, wall);
  append(optimizer_, longest(full, &RankSteps::optimizer));
  const double full_s = median(wall), compute_s = median(longest(compute, &RankSteps::wall));
  compute_.push_back(compute_s);
  composition_.push_back(moments(wall).mean / predicted_step(job_.model, job_.plan, compute, comm, job_.beside));
  if (job_.plan.world() == 1) return;
  const auto all = standings(job_.plan, full);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const bool every = all.size() <= kMostRanksStepByStep;
    append(ranks_[rank].self_time, every ? all[rank].self_time : std::vector<double>{median(all[rank].self_time)});
    append(ranks_[rank].lateness, every ? all[rank].lateness : std::vector<double>{median(all[rank].lateness)});
    ranks_[rank].last_share.push_back(all[rank].last_share);
    if (all[rank].self_share) ranks_[rank].self_share.push_back(*all[rank].self_share);
  }
  const double comm_s = median(longest(comm, &RankSteps::wall));
  comm_.push_back(comm_s);
  exposed_.push_back(full_s - compute_s);
  if (const auto overlap = overlap_efficiency(full_s, compute_s, comm_s)) overlap_.push_back(*overlap);
}

void StepFigures::record(const RankSubjects& subjects, Recorder& record) const {
  const Subject& all = subjects.all();
  record.measurement("step_time", {.samples = step_, .warmup = warmup_, .stopped = "fixed"}, all);
  record.measurement("compute_time", fixed(compute_), all);
  record.measurement("optimizer_time", fixed(optimizer_), all);
  record.measurement("composition", fixed(composition_), all);
  record.measurement("tail_share", tail_share(step_), all);
  if (job_.data != DataMode::ring) record_rates(all, record);
  if (job_.plan.world() == 1) return;
  record.measurement("comm_time", fixed(comm_), all);
  record.measurement("exposed_comm", fixed(exposed_), all);
  if (!overlap_.empty()) record.measurement("overlap", fixed(overlap_), all);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Subject subject = subjects.of(rank);
    record.measurement("self_time", fixed(ranks_[rank].self_time), subject);
    record.measurement("lateness", fixed(ranks_[rank].lateness), subject);
    record.measurement("last_share", fixed(ranks_[rank].last_share), subject);
    if (!ranks_[rank].self_share.empty()) record.measurement("self_share", fixed(ranks_[rank].self_share), subject);
  }
}

void StepFigures::record_rates(const Subject& subject, Recorder& record) const {
  const auto rate = [&](const char* metric, double amount) {
    Sampling values = fixed(step_);
    values.warmup = warmup_;
    for (auto* list : {&values.samples, &values.warmup}) {
      for (double& value : *list) value = amount / value;
    }
    record.measurement(metric, values, subject);
  };
  const auto tokens = static_cast<double>(job_.plan.tokens_per_step());
  rate("tokens_rate", tokens);
  const ModelShape run = with_layers(job_.model, job_.plan.layers);
  rate("model_flop_rate", tokens * static_cast<double>(flop_per_token(run, job_.plan.seq)));
}

}  // namespace assay::train
