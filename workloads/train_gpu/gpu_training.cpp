// gpu_training: requests to the ranks, and arithmetic of step_evidence on their answers.
#include "workloads/train_gpu/gpu_training.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/limits.h"
#include "workloads/train/graph/virtual_time.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train/step/step_figures.h"
#include "workloads/train_gpu/algorithm_table.h"
#include "workloads/train_gpu/attention_choice.h"
#include "workloads/train_gpu/device_rehearsal.h"

namespace assay::train_gpu {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::uint64_t kExactSteps = 2;  // the second begins from weights that the first has made

/// One run.
class GpuTraining {
 public:
  GpuTraining(collective::Fleet& fleet, const Parameters& given, const train::RankJob& job,
              const std::vector<std::string>& names, Recorder& record)
      : fleet_(fleet),
        given_(given),
        job_(job),
        plan_(job_.plan),
        record_(record),
        subjects_(names, fleet.ranks_per_node()),
        figures_(job) {}

  void run() {
    settle_attention();
    meet();
    check_exact("before");
    check_attention("before");
    (void)ask({{"do", "prepare"}}, collective::kBatchLimit);  // an error has been thrown
    time();
    settle();
    check_exact("after");
    check_attention("after");
    conclude();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Answers ask(const json& request, Seconds limit) { return fleet_.ask(request, limit); }

  /// Whether a host does the exact steps, too.
  [[nodiscard]] bool compares_with_host() const {
    constexpr double kMost = 1e11;  // FLOP of a step: seconds on one processor
    const std::string& asked = given_.text("reference");
    if (asked != "auto") return asked == "one_rank";
    const auto each = train::flop_per_token(train::with_layers(job_.model, plan_.layers), plan_.seq);
    return static_cast<double>(each) * static_cast<double>(plan_.tokens_per_step()) <= kMost;
  }

  void accuse(const train::Blame& blame, const std::string& when) {
    mismatches_ += blame.mismatches;
    for (const auto& words : blame.words) record_.note(fmt::format("{}: {}", when, words));
  }

  /// Asks every rank for plans of fused attention, and settles how it is done.
  void settle_attention() {
    std::vector<AttentionOffer> offers;
    if (unfused_reason(job_).empty()) {
      for (const auto& answer : ask({{"do", "attention"}}, collective::kEnterLimit))  // compiles kernels
        offers.push_back({.reason = answer.at("reason"),
                          .words = answer.at("words"),
                          .room = answer.at("room"),
                          .ordered = answer.at("ordered")});
    }
    const AttentionChoice choice = chosen_attention(job_, offers, kQueriesTogether);
    job_.attention = choice.kind;
    job_.attention_room = choice.room;
    ordered_ = choice.ordered;
    record_.condition("attention", choice.words);
  }

  /// Counts ranks whose fused attention is too far from products, or differs in a second run though sums have one
  /// order.
  void check_attention(const std::string& when) {
    if (!fuses(job_)) return;
    const Answers answers = ask({{"do", "compare"}}, collective::kBatchLimit);
    double largest = 0;
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      const auto apart = answers[rank].at("apart").get<std::uint64_t>(),
                 unequal = answers[rank].at("unequal").get<std::uint64_t>();
      largest = std::max(largest, answers[rank].at("largest").get<double>());
      if (apart > 0)
        accuse({.mismatches = 1,
                .words = {fmt::format("rank {}: {} numbers of fused attention are too far from those of products", rank,
                                      apart)}},
               when);
      if (unequal > 0 && ordered_)
        accuse({.mismatches = 1,
                .words = {fmt::format("rank {}: {} numbers of fused attention differ in a second run", rank, unequal)}},
               when);
    }
    attention_difference_ = std::max(attention_difference_, largest);
  }

  void meet() {
    const Answers all_memory =
        ask({{"do", "hello"}, {"attention", static_cast<int>(job_.attention)}}, collective::kHelloLimit);
    std::uint64_t most = 0;
    for (std::size_t rank = 0; rank < all_memory.size(); ++rank) {
      const auto free = all_memory[rank].at("free").get<std::uint64_t>(),
                 need = all_memory[rank].at("need").get<std::uint64_t>();
      most = std::max(most, need);
      if (need <= free) continue;
      train::RankJob large = job_;
      large.rank = static_cast<std::int64_t>(rank);
      check_device_memory(large, {free});  // throws
    }
    record_.condition("gpu_memory_need", static_cast<std::int64_t>(most));
    json words = json::array();
    for (auto& answer : ask({{"do", "introduce"}}, collective::kHelloLimit))
      words.push_back(std::move(answer.at("word")));
    std::vector<AlgorithmTable> tables;
    for (const auto& answer : ask({{"do", "enter"}, {"words", words}}, collective::kEnterLimit))
      tables.push_back(answer.at("algorithms").get<AlgorithmTable>());
    const AgreedAlgorithms all = agreed(tables);
    (void)ask({{"do", "agree"}, {"algorithms", all.table}},
              collective::kHelloLimit);  // an error has been thrown
    record_.condition("reference", std::string(compares_with_host() ? "one_rank" : "none"));
    record_.condition("product_shapes", static_cast<std::int64_t>(all.table.size()));
    record_.condition("algorithms_differed", static_cast<std::int64_t>(all.differed));
  }

  void check_exact(const std::string& when) {
    const Answers answers = ask({{"do", "exact"}, {"steps", kExactSteps}}, collective::kBatchLimit);
    Answers reference;
    if (compares_with_host()) reference = ask({{"do", "reference"}, {"steps", kExactSteps}}, collective::kBatchLimit);
    for (std::size_t step = 0; step < kExactSteps; ++step) {
      std::vector<std::size_t> differ;
      std::vector<train::RankPrint> prints;
      for (std::size_t rank = 0; rank < answers.size(); ++rank) {
        if (answers[rank].at("differ").at(step).get<bool>()) differ.push_back(rank);
        prints.push_back(train::print_from(answers[rank].at("prints").at(step)));
      }
      if (!differ.empty())
        accuse({.mismatches = 1,
                .words = {fmt::format("ranks {} have two gradients of one exact step", fmt::join(differ, ", "))}},
               when);
      if (!reference.empty())
        accuse(train::against_one_rank(plan_, prints, train::print_from(reference.front().at("prints").at(step))),
               when);
      else if (plan_.replicas() > 1)
        accuse(train::votes_of(plan_, prints, train::Ballot::weights), when);
    }
  }

  std::vector<train::RankSteps> steps(train::Variant variant, std::int64_t count) {
    std::vector<train::RankSteps> all;
    for (const auto& answer :
         ask({{"do", "steps"}, {"variant", static_cast<int>(variant)}, {"first", number_}, {"count", count}},
             collective::kBatchLimit))
      all.push_back(train::steps_from(answer));
    number_ += static_cast<std::uint64_t>(count);
    return all;
  }

  void time() {
    const std::int64_t block = given_.count("block"), rounds = given_.count("steps") / block;
    const std::int64_t part = std::max<std::int64_t>(3, block / 2);
    const double before_s = std::chrono::duration<double>(Clock::now() - begin_).count();
    const auto warmup = steps(train::Variant::full, given_.count("warmup_steps"));
    double first_s = 0;
    for (const train::RankSteps& rank : warmup) first_s = std::max(first_s, rank.wall.front());
    record_.condition("first_step_s", before_s + first_s);
    figures_.take_warmup(warmup);
    for (std::int64_t round = 0; round < rounds; ++round) {
      if (job_.data == train::DataMode::replicated) vote();
      const auto compute = steps(train::Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? steps(train::Variant::comm_only, part) : std::vector<train::RankSteps>(1);
      figures_.take_round(compute, comm, steps(train::Variant::full, block));
    }
  }

  void vote() {
    std::vector<train::RankPrint> prints;
    for (const auto& answer : ask({{"do", "votes"}, {"number", number_++}}, collective::kBatchLimit))
      prints.push_back(train::print_from(answer.at("print")));
    accuse(train::votes_of(plan_, prints, train::Ballot::gradients), "during");
  }

  void settle() {
    std::vector<train::RankPrint> prints;
    for (const auto& answer : ask({{"do", "settle"}}, collective::kBatchLimit)) {
      prints.push_back(train::print_from(answer.at("print")));
      mismatches_ += answer.at("not_finite").get<std::uint64_t>();
    }
    if (plan_.replicas() > 1) accuse(train::votes_of(plan_, prints, train::Ballot::weights), "weights at the end");
  }

  void conclude() {
    const json facts = ask({{"do", "facts"}}, collective::kHelloLimit).front();
    if (fuses(job_)) record_.condition("attention_difference", attention_difference_);
    record_.condition("cublaslt_version", facts.at("cublaslt").get<std::string>());
    if (plan_.world() > 1) record_.condition("nccl_version", facts.at("nccl").get<std::string>());
    figures_.record(subjects_, record_);
    record_.measurement("mismatches", static_cast<double>(mismatches_), subjects_.all());
  }

  collective::Fleet& fleet_;
  const Parameters& given_;
  train::RankJob job_;
  const train::ParallelPlan& plan_;
  Recorder& record_;
  train::RankSubjects subjects_;
  train::StepFigures figures_;
  std::uint64_t number_ = 0, mismatches_ = 0;
  bool ordered_ = false;             ///< sums of fused attention
  double attention_difference_ = 0;  ///< over the tolerance
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

void conduct_gpu_training(collective::Fleet& fleet, const Parameters& given, const train::RankJob& job,
                          const std::vector<std::string>& names, Recorder& record) {
  GpuTraining(fleet, given, job, names, record).run();
}

}  // namespace assay::train_gpu
