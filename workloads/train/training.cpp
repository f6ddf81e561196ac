// training: requests that the probes of training have in common, and what their answers mean.
#include "workloads/train/training.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/gloo/rank_start.h"
#include "workloads/train/accounting.h"
#include "workloads/train/rank_job.h"

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

}  // namespace

std::vector<RankProgram> rank_programs(const std::string& path, const RankJob& job, std::int64_t first,
                                       std::int64_t count, const std::string& address,
                                       const std::vector<std::string>& environment) {
  std::vector<RankProgram> programs;
  for (std::int64_t rank = first; rank < first + count; ++rank) {
    RankJob mine = job;
    mine.rank = rank;
    programs.push_back({.path = path,
                        .arguments = rank_arguments("train_step_rank", {.job = mine, .address = address}),
                        .environment = environment,
                        .title = fmt::format("rank {} ({})", rank, address)});
  }
  return programs;
}

Training::Training(Fleet& fleet, const Parameters& given, const RankJob& job, Seconds grace)
    : fleet_(fleet), given_(given), job_(job), grace_(grace) {}

Answers Training::ask(const json& request, Seconds limit) { return fleet_.ask(request, {limit.count + grace_.count}); }

void Training::meet(const std::function<void(const Answers&)>& entered) {
  const Bytes memory =
      admitted(ask({{"do", "hello"}}, kHelloLimit), static_cast<std::int64_t>(fleet_.ranks_per_node()));
  check_memory(job_.model, job_.plan, {memory.count - std::min(memory.count, aside())});
  if (with_reference()) {
    const ParallelPlan alone = undivided(job_.plan);
    if (memory_needed(job_.model, alone).count > memory.count)
      throw BadParameter(fmt::format("reference: one rank alone needs {} B, {} B are available; give reference=none",
                                     memory_needed(job_.model, alone).count, memory.count));
  }
  if (job_.plan.world() == 1) return;
  json words = json::array();
  for (auto& answer : ask({{"do", "introduce"}}, kHelloLimit)) words.push_back(std::move(answer.at("word")));
  entered(ask({{"do", "enter"}, {"words", words}}, kEnterLimit));
}

/// What an engine of several ranks takes beside: weights and moments that compute-only steps update, in B.
std::uint64_t Training::aside() const {
  std::int64_t most = 0;
  for (std::int64_t place = 0; place < job_.plan.pp && job_.plan.world() > 1; ++place) {
    std::int64_t elements = 0;
    for (const Bucket& bucket : buckets_of(job_.model, job_.plan, place)) elements += bucket.elements;
    most = std::max(most, elements);
  }
  return static_cast<std::uint64_t>(most) * 3 * sizeof(float);
}

void Training::accuse(const Blame& blame, const std::string& when) {
  mismatches_ += blame.mismatches;
  for (const auto& words : blame.words) findings_.push_back(fmt::format("{}: {}", when, words));
}

void Training::check_exact(const std::string& when) {
  const Answers answers = ask({{"do", "exact"}, {"steps", kExactSteps}}, kBatchLimit);
  Answers reference;
  if (with_reference()) reference = ask({{"do", "reference"}, {"steps", kExactSteps}}, kBatchLimit);
  for (std::size_t step = 0; step < kExactSteps; ++step) {
    std::vector<std::int64_t> firsts;
    std::vector<RankPrint> prints;
    for (const auto& answer : answers) {
      firsts.push_back(answer.at("firsts").at(step));
      prints.push_back(print_from(answer.at("prints").at(step)));
    }
    accuse(blame_of(job_.model, job_.plan, firsts), when);
    if (with_reference())
      accuse(against_one_rank(job_.plan, prints, print_from(reference.front().at("prints").at(step))), when);
    else if (job_.plan.replicas() > 1)
      accuse(votes_of(job_.plan, prints, Ballot::weights), when);
  }
}

void Training::prepare() {
  (void)ask({{"do", "prepare"}}, kHelloLimit);  // an error has been thrown
}

std::vector<RankSteps> Training::steps(Variant variant, std::int64_t count, Seconds limit) {
  const Answers answers =
      ask({{"do", "steps"}, {"variant", static_cast<int>(variant)}, {"first", number_}, {"count", count}}, limit);
  number_ += static_cast<std::uint64_t>(count);
  std::vector<RankSteps> all;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    all.push_back(steps_from(answers[rank]));
    if (const auto share = answers[rank].find("off_cpu"); share != answers[rank].end())
      off_cpu_ = std::max(off_cpu_, share->get<double>());
  }
  return all;
}

void Training::vote(Seconds limit) {
  std::vector<RankPrint> prints;
  for (const auto& answer : ask({{"do", "votes"}, {"number", number_++}}, limit))
    prints.push_back(print_from(answer.at("print")));
  accuse(votes_of(job_.plan, prints, Ballot::gradients), "during");
}

void Training::settle() {
  std::vector<RankPrint> prints;
  for (const auto& answer : ask({{"do", "settle"}}, kBatchLimit)) {
    prints.push_back(print_from(answer.at("print")));
    mismatches_ += answer.at("not_finite").get<std::uint64_t>();
  }
  if (job_.plan.replicas() > 1) accuse(votes_of(job_.plan, prints, Ballot::weights), "weights at the end");
}

Answers Training::facts() { return ask({{"do", "facts"}}, kHelloLimit); }

}  // namespace assay::train
