// moe_run: rounds of all families, each together with the balanced one.
#include "workloads/inference/moe_run.h"

#include <fmt/format.h>

#include "probes/collective/limits.h"
#include "probes/core/probe.h"
#include "probes/core/statistics.h"
#include "probes/gloo/rank_start.h"
#include "workloads/storage/shared/payload.h"

namespace assay::inference {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr Family kYardstick = Family::spread;
constexpr std::int64_t kStepsOfRound = static_cast<std::int64_t>(kBurstPeriod);  // one of them bursts
constexpr std::chrono::duration<double> kIdle(1);

/// One run.
class Conduct {
 public:
  Conduct(collective::Fleet& fleet, const Parameters& given, const ExchangeJob& job)
      : fleet_(fleet), given_(given), families_(families_in(given.text("families"), job.routing)) {
    outcome_.job = job;
    outcome_.ranks.resize(fleet.ranks());
    std::erase(families_, kYardstick);  // it leads every round
  }

  MoeOutcome run(const std::function<void(const Answers&)>& entered) {
    meet(entered);
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
  void meet(const std::function<void(const Answers&)>& entered) {
    const Bytes memory = gloo::admitted(fleet_.ask({{"do", "hello"}}, collective::kHelloLimit),
                                        static_cast<std::int64_t>(fleet_.ranks_per_node()));
    if (outcome_.job.memory() > memory.count)
      throw BadParameter(fmt::format("tokens: a rank needs {} B at worst, {} B are available; give fewer tokens",
                                     outcome_.job.memory(), memory.count));
    json words = json::array();
    for (auto& answer : fleet_.ask({{"do", "introduce"}}, collective::kHelloLimit))
      words.push_back(std::move(answer.at("word")));
    entered(
        fleet_.ask({{"do", "enter"}, {"words", words}}, {collective::kEnterLimit.count + collective::kGrace.count}));
    outcome_.job.nonce = cluster_storage::fresh_payload_nonce();
    (void)fleet_.ask({{"do", "prepare"}, {"nonce", outcome_.job.nonce}},
                     collective::kHelloLimit);  // an error has been thrown
  }

  std::vector<MoeSteps> steps(Family family, std::int64_t count) {
    std::vector<MoeSteps> all;
    for (const auto& answer : fleet_.ask({{"do", "steps"}, {"family", family}, {"first", number_}, {"count", count}},
                                         {collective::kBatchLimit.count + collective::kGrace.count})) {
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
    sleep_until_stopped(kIdle);
    FamilySteps first;
    first.add(steps(kYardstick, 1), 0);
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
  std::vector<Family> families_;
  MoeOutcome outcome_;
  std::uint64_t number_ = 0;  ///< of the next step
};

}  // namespace

MoeOutcome conduct_exchange(collective::Fleet& fleet, const Parameters& given, const ExchangeJob& job,
                            const std::function<void(const Answers&)>& entered) {
  return Conduct(fleet, given, job).run(entered);
}

}  // namespace assay::inference
