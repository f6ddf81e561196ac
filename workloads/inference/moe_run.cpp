// moe_run: rounds of all families, each together with the balanced one.
#include "workloads/inference/moe_run.h"

#include <fmt/format.h>

#include "probes/collective/limits.h"
#include "probes/core/statistics.h"
#include "workloads/storage/shared/payload.h"

namespace assay::inference {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr Family kYardstick = Family::spread;
constexpr std::int64_t kStepsOfRound = static_cast<std::int64_t>(kBurstPeriod);  // one of them bursts
constexpr double kIdle_s = 1;
constexpr std::uint64_t kLead = 32;  // pairs that do not count, before steps on GPUs

/// The most tokens of a rank with which `job` needs no more than `memory`; 0 for none.
std::int64_t most_tokens(ExchangeJob job, const EngineRules& rules, Bytes memory) {
  std::int64_t fits = 0, too_many = job.routing.tokens / job.routing.ranks;
  while (too_many - fits > 1) {
    const std::int64_t tokens = fits + (too_many - fits) / 2;
    job.routing.tokens = tokens * job.routing.ranks;
    (rules.needs(job) <= memory.count ? fits : too_many) = tokens;
  }
  return fits;
}

/// One run.
class Conduct {
 public:
  Conduct(collective::Fleet& fleet, const Parameters& given, const ExchangeJob& job, const EngineRules& rules)
      : fleet_(fleet), given_(given), rules_(rules), families_(families_in(given.text("families"), job.routing)) {
    outcome_.job = job;
    outcome_.ranks.resize(fleet.ranks());
    std::erase(families_, kYardstick);  // it leads every round
  }

  MoeOutcome run() {
    meet();
    warm_up();
    const std::int64_t rounds = given_.count("rounds");
    for (std::int64_t round = 0; round < rounds; ++round) {
      take_round(static_cast<std::size_t>(round));
      take_after_idle();
      take_edges();
    }
    return std::move(outcome_);
  }

 private:
  void meet() {
    const Bytes memory = rules_.admit(fleet_.ask({{"do", "hello"}}, collective::kHelloLimit));
    if (const std::uint64_t needed = rules_.needs(outcome_.job); needed > memory.count)
      throw BadParameter(
          fmt::format("tokens: a rank needs {} B at worst, {} B are available; give at most {} tokens, or fewer ranks",
                      needed, memory.count, most_tokens(outcome_.job, rules_, memory)));
    json words = json::array();
    for (auto& answer : fleet_.ask({{"do", "introduce"}}, collective::kHelloLimit))
      words.push_back(std::move(answer.at("word")));
    const auto answers =
        fleet_.ask({{"do", "enter"}, {"words", words}}, {collective::kEnterLimit.count + collective::kGrace.count});
    if (rules_.entered) rules_.entered(answers);
    outcome_.job.nonce = cluster_storage::fresh_payload_nonce();
    (void)fleet_.ask({{"do", "prepare"}, {"nonce", outcome_.job.nonce}},
                     collective::kHelloLimit);  // an error has been thrown
  }

  /// Steps of all ranks. Without a lead they come after a rest.
  std::vector<MoeSteps> steps(Family family, std::int64_t count, bool rested = false) {
    std::vector<MoeSteps> all;
    const json request = {{"do", "steps"},  {"family", family},           {"first", number_},
                          {"count", count}, {"lead", rested ? 0 : kLead}, {"rest_s", rested ? kIdle_s : 0}};
    for (const auto& answer : fleet_.ask(request, {collective::kBatchLimit.count + collective::kGrace.count})) {
      all.push_back(moe_steps_from(answer));
      outcome_.findings.take(all.back().findings);
    }
    number_ += static_cast<std::uint64_t>(count);
    return all;
  }

  /// The steps of a family, kept; their medians in s.
  std::vector<MoeSteps> keep(Family family) {
    FamilySteps& kept = outcome_.families[family];
    const Router router(outcome_.job.routing, family);
    for (std::uint64_t i = 0; i < kBurstPeriod; ++i) kept.imbalances.push_back(router.imbalance(number_ + i));
    auto taken = steps(family, kStepsOfRound);
    kept.add(taken, outcome_.job.routing.tokens);
    return taken;
  }

  void warm_up() {
    for (const Family family : {kYardstick, families_.empty() ? kYardstick : families_.front()}) {
      FamilySteps once;
      once.add(steps(family, kStepsOfRound), outcome_.job.routing.tokens);
      auto& warmup = outcome_.families[family].warmup;
      for (const double time : once.last(static_cast<std::size_t>(kStepsOfRound))) warmup.push_back(time);
    }
  }

  void take_round(std::size_t round) {
    const auto even = keep(kYardstick);
    const auto all = moe_standings(even);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      auto& figures = outcome_.ranks[rank];
      figures.self_time.insert(figures.self_time.end(), all[rank].self_time.begin(), all[rank].self_time.end());
      figures.lateness.insert(figures.lateness.end(), all[rank].lateness.begin(), all[rank].lateness.end());
      figures.last_share.push_back(all[rank].last_share);
      if (all[rank].self_share) figures.self_share.push_back(*all[rank].self_share);
    }
    const double even_s = moments(outcome_.families[kYardstick].last(kBurstPeriod)).mean;
    for (std::size_t i = 0; i < families_.size(); ++i) {
      const Family family = families_[(i + round) % families_.size()];  // none is always first
      (void)keep(family);                                               // its steps are in the outcome
      FamilySteps& kept = outcome_.families[family];
      double imbalance = 0;
      for (auto at = kept.imbalances.end() - kStepsOfRound; at != kept.imbalances.end(); ++at) imbalance += *at;
      imbalance /= static_cast<double>(kStepsOfRound);
      kept.penalties.push_back(moments(kept.last(kBurstPeriod)).mean / even_s / imbalance);
    }
  }

  void take_after_idle() {
    FamilySteps first;
    first.add(steps(kYardstick, 1, true), 0);
    outcome_.after_idle.push_back(first.last(1).front());
  }

  void take_edges() {
    const auto answers = fleet_.ask({{"do", "edges"}}, {collective::kBatchLimit.count + collective::kGrace.count});
    std::size_t at = 0;
    for (std::size_t low = 0; low < answers.size(); ++low) {
      for (const auto& told : answers[low].at("edges")) {
        const std::int64_t high = told.at(0), here = outcome_.job.ranks_per_node;
        if (at == outcome_.edges.size())
          outcome_.edges.push_back({.low = static_cast<std::int64_t>(low),
                                    .high = high,
                                    .within = static_cast<std::int64_t>(low) / here == high / here,
                                    .times = {}});
        outcome_.edges.at(at++).times.push_back(told.at(1));  // in the same order in every round
      }
    }
  }

  collective::Fleet& fleet_;
  const Parameters& given_;
  const EngineRules& rules_;
  std::vector<Family> families_;
  MoeOutcome outcome_;
  std::uint64_t number_ = 0;  ///< of the next step
};

}  // namespace

MoeOutcome conduct_exchange(collective::Fleet& fleet, const Parameters& given, const ExchangeJob& job,
                            const EngineRules& rules) {
  return Conduct(fleet, given, job, rules).run();
}

}  // namespace assay::inference
