// Tokens to their experts and back: right in every byte for every family, and what is lost, doubled or changed is
// named.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "tests/unit/inference/exchange_ranks.h"
#include "workloads/inference/moe_evidence.h"
#include "workloads/inference/moe_job.h"
#include "workloads/inference/token_payload.h"

namespace assay::inference {
namespace {

const ExchangeJob kJob{.routing = {.tokens = 24, .experts = 6, .top_k = 2, .ranks = 3, .seed = 4},
                       .hidden = 32,
                       .out_number = 2,
                       .back_number = 4,
                       .nonce = 99};

/// One step of `family` by all ranks, one of which changes what leaves it.
std::vector<ExchangeStep> stepped(const ExchangeJob& job, Family family, std::size_t victim = 0,
                                  const Tamper& tamper = {}, std::uint64_t number = 0) {
  std::vector<ExchangeStep> steps(static_cast<std::size_t>(job.routing.ranks));
  on_exchange_ranks(job, [&](std::size_t rank, ExpertExchange& exchange) {
    const Router router(job.routing, family);
    steps[rank] = exchange.step(router, number, rank == victim ? tamper : Tamper{});
  });
  return steps;
}

Findings all_findings(const std::vector<ExchangeStep>& steps) {
  Findings all;
  for (const auto& step : steps) all.take(step.findings);
  return all;
}

std::string told(const Findings& findings) {
  std::string all;
  for (const auto& words : findings.words) all += words + "\n";
  return all;
}

/// Slots that rank 0 sends to rank 1 are changed by `change`.
Tamper towards_rank_1(const std::function<void(Leaving)>& change, bool back = false) {
  return [=](Leaving leaving) {
    if (leaving.target == 1 && leaving.back == back) change(leaving);
  };
}

TEST(ExpertExchange, is_right_for_every_family_and_both_ways_to_copy) {
  for (const bool once : {true, false}) {
    ExchangeJob job = kJob;
    job.once_per_rank = once;
    on_exchange_ranks(job, [&](std::size_t rank, ExpertExchange& exchange) {
      std::uint64_t number = 0;
      for (const auto& [family, word] : words_of(Family{})) {
        for (int i = 0; i < 8; ++i) {
          const auto step = exchange.step(Router(job.routing, family), number++);
          EXPECT_EQ(step.findings.count, 0U) << word << " on rank " << rank << ": " << told(step.findings);
        }
      }
    });
  }
}

TEST(ExpertExchange, counts_what_stays_on_a_rank_and_on_a_node_apart_from_the_network) {
  ExchangeJob job = kJob;
  job.routing.experts = 4;
  job.routing.ranks = 4;
  job.routing.top_k = 4;  // every token goes to every rank once
  job.ranks_per_node = 2;
  for (const auto& step : stepped(job, Family::spread)) {
    EXPECT_EQ(step.traffic.own, 6);
    EXPECT_EQ(step.traffic.node, 6);
    EXPECT_EQ(step.traffic.network, 12);
    EXPECT_EQ(step.traffic.node_bytes, 6 * (job.out_slot() + job.back_slot()));
    EXPECT_EQ(step.traffic.network_bytes, 12 * (job.out_slot() + job.back_slot()));
  }
}

TEST(ExpertExchange, that_keeps_all_tokens_on_their_rank_sends_nothing) {
  ExchangeJob job = kJob;
  job.routing = {.tokens = 12, .experts = 6, .top_k = 2, .ranks = 3, .seed = 0};
  const auto steps = stepped(job, Family::burst, 0, {}, 7);  // all tokens to rank 0
  EXPECT_EQ(steps[0].traffic.own, 8);
  EXPECT_EQ(steps[0].traffic.network_bytes, 0U);
  EXPECT_EQ(steps[1].traffic.own, 0);
  EXPECT_EQ(all_findings(steps).count, 0U);
}

TEST(ExpertExchange, of_several_experts_on_a_rank_sends_one_copy) {
  ExchangeJob job = kJob;
  const auto once = stepped(job, Family::balanced);
  job.once_per_rank = false;
  const auto each = stepped(job, Family::balanced);
  // In balanced both experts of a token are neighbours: on one rank.
  EXPECT_EQ(once[0].traffic.network_bytes / (kJob.out_slot() + kJob.back_slot()) * 2,
            each[0].traffic.network_bytes / (job.out_slot() + job.back_slot()));
}

TEST(ExpertExchange, a_lost_token_is_named_with_both_ranks) {
  const auto findings =
      all_findings(stepped(kJob, Family::spread, 0, towards_rank_1([](Leaving leaving) { --*leaving.count; })));
  EXPECT_EQ(findings.count, 2U) << told(findings);  // it never came, and its sum lacks a part
  EXPECT_NE(told(findings).find("of rank 0 was lost: expert"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("on rank 1 never had it"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("what rank 1 made of token"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("of rank 0 is missing"), std::string::npos) << told(findings);
}

TEST(ExpertExchange, a_doubled_token_is_named_with_both_ranks) {
  const auto findings =
      all_findings(stepped(kJob, Family::spread, 0, towards_rank_1([](Leaving leaving) {
                             const std::size_t at = *leaving.count * leaving.each;
                             std::memcpy(leaving.slots.data() + at, leaving.slots.data(), leaving.each);
                             ++*leaving.count;
                           })));
  EXPECT_EQ(findings.count, 2U) << told(findings);
  EXPECT_NE(told(findings).find("of rank 0 was doubled: expert"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("on rank 1 had it 2 times"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("of rank 0 came more than once"), std::string::npos) << told(findings);
}

TEST(ExpertExchange, one_turned_bit_of_a_token_is_named_on_the_rank_that_has_it) {
  const auto findings = all_findings(stepped(kJob, Family::zipf, 0, towards_rank_1([](Leaving leaving) {
                                               leaving.slots[leaving.each - 1] ^= std::byte{0x10};
                                             })));
  EXPECT_EQ(findings.count, 2U) << told(findings);
  EXPECT_NE(told(findings).find("of rank 0 has other bytes on rank 1"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("of rank 0 is wrong"), std::string::npos) << told(findings);
}

TEST(ExpertExchange, one_turned_bit_on_the_way_back_names_the_rank_that_returned_it) {
  const auto findings = all_findings(
      stepped(kJob, Family::spread, 2,
              towards_rank_1([](Leaving leaving) { leaving.slots[leaving.each - 1] ^= std::byte{1}; }, true)));
  EXPECT_EQ(findings.count, 1U) << told(findings);
  EXPECT_NE(told(findings).find("what rank 2 made of token"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("of rank 1 is wrong"), std::string::npos) << told(findings);
}

TEST(ExpertExchange, a_result_that_comes_in_place_of_another_is_named_as_lost_and_doubled) {
  const auto findings = all_findings(stepped(
      kJob, Family::spread, 2,
      towards_rank_1(
          [](Leaving leaving) { std::memcpy(leaving.slots.data() + leaving.each, leaving.slots.data(), leaving.each); },
          true)));
  EXPECT_EQ(findings.count, 2U) << told(findings);
  EXPECT_NE(told(findings).find("of rank 1 came more than once"), std::string::npos) << told(findings);
  EXPECT_NE(told(findings).find("of rank 1 is missing"), std::string::npos) << told(findings);
}

TEST(ExpertExchange, a_token_for_another_expert_and_a_foreign_head_are_named) {
  const auto expert = all_findings(stepped(kJob, Family::spread, 0, towards_rank_1([](Leaving leaving) {
                                             const std::uint16_t first = 0;  // of rank 0
                                             std::memcpy(leaving.slots.data() + sizeof(SlotHead), &first, sizeof first);
                                           })));
  EXPECT_NE(told(expert).find("came to rank 1 for expert 0, which it is not for"), std::string::npos) << told(expert);
  const auto head = all_findings(
      stepped(kJob, Family::spread, 0, towards_rank_1([](Leaving leaving) { leaving.slots[9] ^= std::byte{1}; })));
  EXPECT_NE(told(head).find("what came from rank 0 to rank 1 has a head that none of its tokens has"),
            std::string::npos)
      << told(head);
}

TEST(ExpertExchange, tokens_of_an_earlier_step_do_not_pass) {
  std::vector<std::byte> earlier;
  std::mutex mutex;
  Findings all;
  on_exchange_ranks(kJob, [&](std::size_t rank, ExpertExchange& exchange) {
    const Router router(kJob.routing, Family::spread);
    (void)exchange.step(router, 0, rank != 0 ? Tamper{} : towards_rank_1([&](Leaving leaving) {
                          earlier.assign(leaving.slots.begin(),
                                         leaving.slots.begin() + static_cast<std::ptrdiff_t>(leaving.each));
                        }));
    const auto step = exchange.step(router, 6, rank != 0 ? Tamper{} : towards_rank_1([&](Leaving leaving) {
                                      std::ranges::copy(earlier, leaving.slots.begin());
                                    }));
    const std::lock_guard lock(mutex);
    all.take(step.findings);
  });
  EXPECT_GE(all.count, 1U);
}

/// What a rank that computes slowly does: it spins.
void spin(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) continue;
}

TEST(ExpertExchange, a_rank_that_packs_slowly_has_the_most_self_time_and_waits_least) {
  constexpr std::size_t kSlow = 1;
  std::vector<MoeSteps> ranks(3);
  on_exchange_ranks(kJob, [&](std::size_t rank, ExpertExchange& exchange) {
    const Router router(kJob.routing, Family::spread);
    const Tamper slow = [](Leaving leaving) {
      if (leaving.target == 0) spin(std::chrono::milliseconds(25));
    };
    for (std::uint64_t number = 0; number < 8; ++number)
      ranks[rank].add(exchange.step(router, number, rank == kSlow ? slow : Tamper{}));
  });
  const auto all = moe_standings(ranks);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == kSlow) continue;
    EXPECT_GT(all[kSlow].self_share.value(), all[rank].self_share.value());
    EXPECT_GT(all[kSlow].last_share, all[rank].last_share);
  }
  EXPECT_GT(all[kSlow].self_share.value(), 2);
  EXPECT_GT(all[kSlow].last_share, 0.7);
}

TEST(MoeJob, what_a_leader_passes_is_what_a_rank_reads) {
  ExchangeJob job = kJob;
  job.rank = 2;
  job.once_per_rank = false;
  const auto read = moe_start(moe_arguments({.job = job, .address = "10.0.0.1"}));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->address, "10.0.0.1");
  EXPECT_EQ(read->job.rank, 2);
  EXPECT_EQ(read->job.out_slot(), job.out_slot());
  EXPECT_EQ(read->job.routing.experts, 6);
  EXPECT_FALSE(read->job.once_per_rank);
  EXPECT_FALSE(moe_start({"moe_dispatch_rank", "1", "{}"}).has_value());
}

}  // namespace
}  // namespace assay::inference
