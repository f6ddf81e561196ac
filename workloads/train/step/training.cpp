// training: the requests that all probes of training put to their ranks, and the reading of the answers.
#include "workloads/train/step/training.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/gloo/rank_start.h"
#include "workloads/train/step/rank_job.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::uint64_t kExactSteps = 2;  // the second begins from weights that the first has made

}  // namespace

std::vector<collective::RankProgram> rank_programs(const std::string& path, const RankJob& job, std::int64_t first,
                                                   std::int64_t count, const std::string& address,
                                                   const std::vector<std::string>& environment) {
  std::vector<collective::RankProgram> programs;
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

Training::Training(collective::Fleet& fleet, const Parameters& given, const RankJob& job, Seconds grace)
    : fleet_(fleet), given_(given), job_(job), grace_(grace) {}

Answers Training::ask(const json& request, Seconds limit) { return fleet_.ask(request, {limit.count + grace_.count}); }

void Training::meet(const std::function<void(const Answers&)>& entered) {
  const Bytes memory = gloo::admitted(ask({{"do", "hello"}}, collective::kHelloLimit),
                                      static_cast<std::int64_t>(fleet_.ranks_per_node()));
  check_memory(job_.model, job_.plan, {memory.count - std::min(memory.count, aside())});
  if (with_reference()) {
    const ParallelPlan alone = undivided(job_.plan);
    if (memory_needed(job_.model, alone).count > memory.count)
      throw BadParameter(fmt::format("reference: a single rank needs {} B, {} B are available; give reference=none",
                                     memory_needed(job_.model, alone).count, memory.count));
  }
  if (job_.plan.world() == 1) return;
  json words = json::array();
  for (auto& answer : ask({{"do", "introduce"}}, collective::kHelloLimit))
    words.push_back(std::move(answer.at("word")));
  entered(ask({{"do", "enter"}, {"words", words}}, collective::kEnterLimit));
}

/// Additional memory of an engine of several ranks: weights and moments that compute-only steps update, in B.
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
  const Answers answers = ask({{"do", "exact"}, {"steps", kExactSteps}}, collective::kBatchLimit);
  Answers reference;
  if (with_reference()) reference = ask({{"do", "reference"}, {"steps", kExactSteps}}, collective::kBatchLimit);
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
  (void)ask({{"do", "prepare"}}, collective::kHelloLimit);  // an error has been thrown
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

std::vector<double> Training::edge_times(const std::vector<Edge>& edges) {
  constexpr int kTrips = 5;  // the shortest counts: others take a processor for a while, not for all of them
  json pairs = json::array();
  for (const Edge& edge : edges) pairs.push_back({edge.one, edge.other});
  const auto here = static_cast<std::int64_t>(fleet_.ranks_per_node());
  const json request = {{"do", "edges"}, {"edges", pairs}, {"stages", stages_of(edges, here)}, {"trips", kTrips}};
  std::vector<double> times(edges.size(), 0);
  for (const auto& answer : ask(request, collective::kBatchLimit)) {
    for (const auto& one : answer.at("times")) times.at(one.at(0).get<std::size_t>()) = one.at(1);
  }
  return times;
}

std::vector<std::vector<std::vector<double>>> Training::timeline() {
  std::vector<std::vector<std::vector<double>>> all;
  for (const auto& answer : ask({{"do", "timeline"}, {"number", number_++}}, collective::kBatchLimit))
    all.push_back(answer.at("stretches").get<std::vector<std::vector<double>>>());
  return all;
}

std::vector<double> Training::group_passes(const std::vector<std::int64_t>& passes) {
  std::vector<double> longest_s(passes.size(), 0);
  for (const auto& answer : ask({{"do", "groups"}, {"passes", passes}}, collective::kBatchLimit)) {
    for (std::size_t kind = 0; kind < passes.size(); ++kind)
      longest_s[kind] = std::max(longest_s[kind], answer.at("times").at(kind).get<double>());
  }
  return longest_s;
}

std::vector<double> Training::group_shares() {
  constexpr std::int64_t kPasses = 4;
  std::vector<double> alone_s(kGroupKinds.size(), 0);
  const auto kinds = group_kinds(job_.plan);
  for (const std::size_t kind : kinds) {
    std::vector<std::int64_t> passes(kGroupKinds.size(), 0);
    passes[kind] = kPasses;
    alone_s[kind] = group_passes(passes)[kind];
  }
  std::vector<double> shares = group_passes(even_passes(alone_s, kPasses));
  for (const std::size_t kind : kinds) shares[kind] /= alone_s[kind];
  return shares;
}

std::vector<std::optional<PackageEnergies>> Training::energies(const std::string& root) {
  const Answers answers = ask({{"do", "energy"}, {"root", root}}, collective::kHelloLimit);
  std::vector<std::optional<PackageEnergies>> nodes;
  for (std::size_t rank = 0; rank < answers.size(); rank += fleet_.ranks_per_node()) {
    auto& node = nodes.emplace_back();
    const auto packages = answers[rank].find("packages");
    if (packages == answers[rank].end()) continue;
    node.emplace();
    for (const auto& [name, counter] : packages->items())
      (*node)[name] = {.energy_uj = counter.at(0), .range_uj = counter.at(1)};
  }
  return nodes;
}

void Training::settle() {
  std::vector<RankPrint> prints;
  for (const auto& answer : ask({{"do", "settle"}}, collective::kBatchLimit)) {
    prints.push_back(print_from(answer.at("print")));
    mismatches_ += answer.at("not_finite").get<std::uint64_t>();
  }
  if (job_.plan.replicas() > 1) accuse(votes_of(job_.plan, prints, Ballot::weights), "weights at the end");
}

Answers Training::facts() { return ask({{"do", "facts"}}, collective::kHelloLimit); }

}  // namespace assay::train
