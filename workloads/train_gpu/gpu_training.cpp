// gpu_training: requests to the ranks, and arithmetic of step_evidence on their answers.
#include "workloads/train_gpu/gpu_training.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/limits.h"
#include "probes/core/statistics.h"
#include "workloads/train/step_evidence.h"
#include "workloads/train/virtual_time.h"
#include "workloads/train_gpu/algorithm_table.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::uint64_t kExactSteps = 2;  // the second begins from weights that the first has made

RankSteps steps_from(const json& answer) {
  RankSteps steps{.wall = answer.at("wall"),
                  .collective = answer.at("collective"),
                  .optimizer = answer.at("optimizer"),
                  .alone = {}};
  for (const auto& one : answer.at("alone"))
    steps.alone[{static_cast<Role>(one.at(0).get<int>()), static_cast<Pass>(one.at(1).get<int>())}] = one.at(2);
  return steps;
}

RankPrint print_from(const json& words) { return {.shared = words.at(0), .experts = words.at(1)}; }

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

/// One run.
class GpuTraining {
 public:
  GpuTraining(Fleet& fleet, const Parameters& given, const RankJob& job, const std::vector<std::string>& names,
              Recorder& record)
      : fleet_(fleet),
        given_(given),
        job_(job),
        plan_(job.plan),
        names_(names),
        record_(record),
        ranks_(fleet.ranks()),
        subject_(fleet.nodes().size() == 1
                     ? Subject{}
                     : Subject{.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))}) {}

  void run() {
    meet();
    check_exact("before");
    (void)ask({{"do", "prepare"}}, kBatchLimit);  // an error has been thrown
    time();
    settle();
    check_exact("after");
    conclude();
  }

 private:
  Answers ask(const json& request, Seconds limit) { return fleet_.ask(request, limit); }

  void accuse(const Blame& blame, const std::string& when) {
    mismatches_ += blame.mismatches;
    for (const auto& words : blame.words) record_.note(fmt::format("{}: {}", when, words));
  }

  void meet() {
    std::uint64_t least = UINT64_MAX;
    for (const auto& answer : ask({{"do", "hello"}}, kHelloLimit))
      least = std::min(least, answer.at("free").get<std::uint64_t>());
    check_memory(job_.model, plan_, {least / 4 * 3});  // the rest is NCCL's and the library's
    json words = json::array();
    for (auto& answer : ask({{"do", "introduce"}}, kHelloLimit)) words.push_back(std::move(answer.at("word")));
    std::vector<AlgorithmTable> tables;
    for (const auto& answer : ask({{"do", "enter"}, {"words", words}}, kEnterLimit))
      tables.push_back(answer.at("algorithms").get<AlgorithmTable>());
    const AgreedAlgorithms all = agreed(tables);
    (void)ask({{"do", "agree"}, {"algorithms", all.table}},
              kHelloLimit);  // an error has been thrown
    record_.condition("product_shapes", static_cast<std::int64_t>(all.table.size()));
    record_.condition("algorithms_differed", static_cast<std::int64_t>(all.differed));
  }

  void check_exact(const std::string& when) {
    const Answers answers = ask({{"do", "exact"}, {"steps", kExactSteps}}, kBatchLimit);
    Answers reference;
    if (given_.text("reference") == "one_rank")
      reference = ask({{"do", "reference"}, {"steps", kExactSteps}}, kBatchLimit);
    for (std::size_t step = 0; step < kExactSteps; ++step) {
      std::vector<std::size_t> differ;
      std::vector<RankPrint> prints;
      for (std::size_t rank = 0; rank < answers.size(); ++rank) {
        if (answers[rank].at("differ").at(step).get<bool>()) differ.push_back(rank);
        prints.push_back(print_from(answers[rank].at("prints").at(step)));
      }
      if (!differ.empty())
        accuse({.mismatches = 1,
                .words = {fmt::format("ranks {} have two gradients of one exact step", fmt::join(differ, ", "))}},
               when);
      if (!reference.empty())
        accuse(against_one_rank(plan_, prints, print_from(reference.front().at("prints").at(step))), when);
      else if (plan_.replicas() > 1)
        accuse(votes_of(plan_, prints, Ballot::weights), when);
    }
  }

  std::vector<RankSteps> steps(Variant variant, std::int64_t count) {
    std::vector<RankSteps> all;
    for (const auto& answer :
         ask({{"do", "steps"}, {"variant", static_cast<int>(variant)}, {"first", number_}, {"count", count}},
             kBatchLimit))
      all.push_back(steps_from(answer));
    number_ += static_cast<std::uint64_t>(count);
    return all;
  }

  void time() {
    const std::int64_t block = given_.count("block"), rounds = given_.count("steps") / block;
    const std::int64_t part = std::max<std::int64_t>(3, block / 2);
    warmup_ = longest(steps(Variant::full, given_.count("warmup_steps")), &RankSteps::wall);
    for (std::int64_t round = 0; round < rounds; ++round) {
      if (job_.data == DataMode::replicated) vote();
      const auto compute = steps(Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? steps(Variant::comm_only, part) : std::vector<RankSteps>(1);
      take_round(compute, comm, steps(Variant::full, block));
    }
  }

  void vote() {
    std::vector<RankPrint> prints;
    for (const auto& answer : ask({{"do", "votes"}, {"number", number_++}}, kBatchLimit))
      prints.push_back(print_from(answer.at("print")));
    accuse(votes_of(plan_, prints, Ballot::gradients), "during");
  }

  void take_round(const std::vector<RankSteps>& compute, const std::vector<RankSteps>& comm,
                  const std::vector<RankSteps>& full) {
    const auto wall = longest(full, &RankSteps::wall);
    append(step_, wall);
    append(optimizer_, longest(full, &RankSteps::optimizer));
    const double full_s = median(wall), compute_s = median(longest(compute, &RankSteps::wall));
    compute_.push_back(compute_s);
    composition_.push_back(moments(wall).mean / predicted_step(job_.model, plan_, compute, comm, job_.beside));
    if (plan_.world() == 1) return;
    const auto all = standings(plan_, full);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      append(ranks_[rank].self_time, all[rank].self_time);
      append(ranks_[rank].lateness, all[rank].lateness);
      ranks_[rank].last_share.push_back(all[rank].last_share);
      if (all[rank].self_share) ranks_[rank].self_share.push_back(*all[rank].self_share);
    }
    const double comm_s = median(longest(comm, &RankSteps::wall));
    comm_.push_back(comm_s);
    exposed_.push_back(full_s - compute_s);
    if (const auto overlap = overlap_efficiency(full_s, compute_s, comm_s)) overlap_.push_back(*overlap);
  }

  void settle() {
    std::vector<RankPrint> prints;
    for (const auto& answer : ask({{"do", "settle"}}, kBatchLimit)) {
      prints.push_back(print_from(answer.at("print")));
      mismatches_ += answer.at("not_finite").get<std::uint64_t>();
    }
    if (plan_.replicas() > 1) accuse(votes_of(plan_, prints, Ballot::weights), "weights at the end");
  }

  void conclude() {
    const json facts = ask({{"do", "facts"}}, kHelloLimit).front();
    record_.condition("cublaslt_version", facts.at("cublaslt").get<std::string>());
    record_.condition("nccl_version", facts.at("nccl").get<std::string>());
    record_.measurement("step_time", {.samples = step_, .warmup = warmup_, .stopped = "fixed"}, subject_);
    record_.measurement("compute_time", fixed(compute_), subject_);
    record_.measurement("optimizer_time", fixed(optimizer_), subject_);
    record_.measurement("composition", fixed(composition_), subject_);
    record_.measurement("tail_share", tail_share(step_), subject_);
    record_.measurement("mismatches", static_cast<double>(mismatches_), subject_);
    if (job_.data != DataMode::ring)
      record_rates();  // exact arithmetic moves few bits: a rate of it would
                       // flatter
    if (plan_.world() > 1) record_communication();
  }

  void record_rates() {
    const auto rate = [&](const char* metric, double amount) {
      Sampling values = fixed(step_);
      values.warmup = warmup_;
      for (auto* list : {&values.samples, &values.warmup}) {
        for (double& value : *list) value = amount / value;
      }
      record_.measurement(metric, values, subject_);
    };
    const auto tokens = static_cast<double>(plan_.tokens_per_step());
    rate("tokens_rate", tokens);
    const ModelShape run = with_layers(job_.model, plan_.layers);
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

  Fleet& fleet_;
  const Parameters& given_;
  const RankJob& job_;
  const ParallelPlan& plan_;
  const std::vector<std::string>& names_;
  Recorder& record_;
  /// What each rank was in every step, and in every round.
  struct RankFigures {
    std::vector<double> self_time, lateness, last_share, self_share;
  };
  std::vector<RankFigures> ranks_;
  Subject subject_;
  std::uint64_t number_ = 0, mismatches_ = 0;
  std::vector<double> warmup_, step_, optimizer_, compute_, comm_, exposed_, overlap_, composition_;
};

}  // namespace

void conduct_gpu_training(Fleet& fleet, const Parameters& given, const RankJob& job,
                          const std::vector<std::string>& names, Recorder& record) {
  GpuTraining(fleet, given, job, names, record).run();
}

}  // namespace assay::train
