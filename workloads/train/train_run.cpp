// train_run: exactness before, rounds of full, compute-only and communication-only steps, exactness after.
#include "workloads/train/train_run.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/limits.h"
#include "probes/core/statistics.h"
#include "probes/gloo/rank_start.h"
#include "workloads/train/accounting.h"
#include "workloads/train/plan_parameters.h"
#include "workloads/train/rank_job.h"
#include "workloads/train/step_evidence.h"
#include "workloads/train/virtual_time.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::uint64_t kExactSteps = 2;  // the second begins from weights that the first has made
constexpr std::int64_t kMostSteps = 1'000'000, kMostWarmup = 1000, kMostBlock = 1000;

RankSteps steps_from(const json& answer) {
  RankSteps steps{.wall = answer.at("wall"),
                  .collective = answer.at("collective"),
                  .optimizer = answer.at("optimizer"),
                  .alone = {}};
  for (const auto& one : answer.at("alone"))
    steps.alone[{static_cast<Role>(one.at(0).get<int>()), static_cast<Pass>(one.at(1).get<int>())}] = one.at(2);
  return steps;
}

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

/// One run.
class Training {
 public:
  Training(Fleet& fleet, const Parameters& given, const RankJob& job, const std::vector<std::string>& names,
           Recorder& record)
      : fleet_(fleet),
        given_(given),
        job_(job),
        names_(names),
        plan_(job.plan),
        record_(record),
        ranks_(fleet.ranks()) {
    if (fleet.nodes().size() > 1) subject_ = {.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))};
  }

  Answers run(const std::function<void(const Answers&)>& entered) {
    meet(entered);
    check_exact("before");
    (void)ask({{"do", "prepare"}}, kHelloLimit);  // an error has been thrown
    time();
    settle();
    check_exact("after");
    return conclude();
  }

 private:
  Answers ask(const json& request, Seconds limit) { return fleet_.ask(request, {limit.count + kGrace.count}); }

  void meet(const std::function<void(const Answers&)>& entered) {
    const Bytes memory =
        admitted(ask({{"do", "hello"}}, kHelloLimit), static_cast<std::int64_t>(fleet_.ranks_per_node()));
    check_memory(job_.model, plan_, {memory.count - std::min(memory.count, aside())});
    if (with_reference()) {
      ParallelPlan alone = plan_;
      alone.micro_batches *= alone.dp;
      alone.tp = alone.pp = alone.dp = 1;
      if (memory_needed(job_.model, alone).count > memory.count)
        throw BadParameter(fmt::format("reference: one rank alone needs {} B, {} B are available; give reference=none",
                                       memory_needed(job_.model, alone).count, memory.count));
    }
    if (plan_.world() == 1) return;
    json words = json::array();
    for (auto& answer : ask({{"do", "introduce"}}, kHelloLimit)) words.push_back(std::move(answer.at("word")));
    entered(ask({{"do", "enter"}, {"words", words}}, kEnterLimit));
  }

  /// What an engine of several ranks takes beside: weights and moments that compute-only steps update, in B.
  [[nodiscard]] std::uint64_t aside() const {
    std::int64_t most = 0;
    for (std::int64_t place = 0; place < plan_.pp && plan_.world() > 1; ++place) {
      std::int64_t elements = 0;
      for (const Bucket& bucket : buckets_of(job_.model, plan_, place)) elements += bucket.elements;
      most = std::max(most, elements);
    }
    return static_cast<std::uint64_t>(most) * 3 * sizeof(float);
  }

  [[nodiscard]] bool with_reference() const { return given_.text("reference") == "one_rank"; }

  void accuse(const Blame& blame, const std::string& when) {
    mismatches_ += blame.mismatches;
    for (const auto& words : blame.words) record_.note(fmt::format("{}: {}", when, words));
  }

  void check_exact(const std::string& when) {
    const Answers answers = ask({{"do", "exact"}, {"steps", kExactSteps}}, kBatchLimit);
    Answers reference;
    if (with_reference()) reference = ask({{"do", "reference"}, {"steps", kExactSteps}}, kBatchLimit);
    for (std::size_t step = 0; step < kExactSteps; ++step) {
      std::vector<std::int64_t> firsts;
      std::vector<std::uint64_t> prints;
      for (const auto& answer : answers) {
        firsts.push_back(answer.at("firsts").at(step));
        prints.push_back(answer.at("prints").at(step));
      }
      accuse(blame_of(job_.model, plan_, firsts), when);
      if (with_reference())
        accuse(against_one_rank(plan_, prints, reference.front().at("prints").at(step)), when);
      else if (job_.plan.dp > 1)
        accuse(votes_of(plan_, prints), when);
    }
  }

  std::vector<RankSteps> steps(Variant variant, std::int64_t count) {
    const Answers answers = ask(
        {{"do", "steps"}, {"variant", static_cast<int>(variant)}, {"first", number_}, {"count", count}}, kBatchLimit);
    number_ += static_cast<std::uint64_t>(count);
    std::vector<RankSteps> all;
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      all.push_back(steps_from(answers[rank]));
      if (const auto share = answers[rank].find("off_cpu"); share != answers[rank].end())
        off_cpu_ = std::max(off_cpu_, share->get<double>());
    }
    return all;
  }

  void time() {
    const std::int64_t block = given_.count("block"), rounds = given_.count("steps") / block;
    warmup_ = longest(steps(Variant::full, given_.count("warmup_steps")), &RankSteps::wall);
    for (std::int64_t round = 0; round < rounds; ++round) {
      if (job_.data == DataMode::replicated) vote();
      const std::int64_t part = std::max<std::int64_t>(3, block / 2);
      const auto compute = steps(Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? steps(Variant::comm_only, part) : std::vector<RankSteps>(1);
      take_round(compute, comm, steps(Variant::full, block));
    }
  }

  void vote() {
    std::vector<std::uint64_t> prints;
    for (const auto& answer : ask({{"do", "votes"}, {"number", number_++}}, kBatchLimit))
      prints.push_back(answer.at("print"));
    accuse(votes_of(plan_, prints), "during");
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

  /// Weights are finite, and the same on all replicas.
  void settle() {
    std::vector<std::uint64_t> prints;
    for (const auto& answer : ask({{"do", "settle"}}, kBatchLimit)) {
      prints.push_back(answer.at("print"));
      mismatches_ += answer.at("not_finite").get<std::uint64_t>();
    }
    if (plan_.dp > 1) accuse(votes_of(plan_, prints), "weights at the end");
  }

  Answers conclude() {
    Answers facts = ask({{"do", "facts"}}, kHelloLimit);
    record_.measurement("step_time", {.samples = step_, .warmup = warmup_, .stopped = "fixed"}, subject_);
    record_.measurement("compute_time", fixed(compute_), subject_);
    record_.measurement("optimizer_time", fixed(optimizer_), subject_);
    record_.measurement("composition", fixed(composition_), subject_);
    record_.measurement("tail_share", tail_share(step_), subject_);
    record_.measurement("mismatches", static_cast<double>(mismatches_), subject_);
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
    record_.condition("off_cpu_share", off_cpu_);
    record_.condition("blas_library", facts.front().at("blas").get<std::string>());
    record_.condition("blas_core", facts.front().at("core").get<std::string>());
  }

  Fleet& fleet_;
  const Parameters& given_;
  const RankJob& job_;
  const std::vector<std::string>& names_;  ///< of the nodes, unlike each other
  const ParallelPlan& plan_;
  Recorder& record_;
  Subject subject_;
  std::uint64_t number_ = 0, mismatches_ = 0;
  double off_cpu_ = 0;
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
  return Training(fleet, given, job, names, record).run(entered);
}

}  // namespace assay::train
