// What moe_dispatch records: rates only of routes that a router can have, and none where a token was wrong.
#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "tests/unit/inference/recorded.h"
#include "workloads/inference/moe_run.h"

namespace assay::inference::moe_record_test {
namespace {

const std::vector<std::string_view> kMetrics = {
    "dispatch_time", "combine_time",    "step_time",  "tokens_rate",   "network_rate", "loopback_rate",
    "imbalance",     "skew_penalty",    "idle_time",  "sent_bytes",    "own_share",    "node_share",
    "network_bytes", "algorithm_bytes", "self_time",  "self_share",    "lateness",     "last_share",
    "edge_time",     "edge_share",      "mismatches", "dispatch_rate", "combine_rate", "pair_time"};

MoeSteps steps(double dispatch_s, double combine_s, std::uint64_t network_bytes) {
  return {.dispatch = {dispatch_s, dispatch_s},
          .combine = {combine_s, combine_s},
          .self = {0.1, 0.1},
          .wait = {0.2, 0.2},
          .traffic = {.own = 8, .node = 0, .network = 8, .slots = 12, .node_bytes = 0, .network_bytes = network_bytes},
          .findings = {}};
}

/// Two nodes of one rank each: 16 tokens a step, of which half leave.
MoeOutcome outcome() {
  MoeOutcome all;
  all.job = {.routing = {.tokens = 8, .experts = 2, .top_k = 2, .ranks = 2}, .hidden = 16};
  all.nodes = {"n1", "n2"};
  all.fabric = true;
  for (const Family family : {Family::spread, Family::zipf}) {
    all.families[family].add({steps(0.25, 0.5, 4000), steps(0.5, 0.25, 4000)}, 8);
    all.families[family].imbalances = {1, 1};
  }
  all.families[Family::zipf].penalties = {1.25};
  all.after_idle = {1};
  all.ranks.resize(2, {.self_time = {0.1}, .lateness = {0}, .last_share = {0.5}, .self_share = {1}});
  all.edges = {{.low = 0, .high = 1, .within = false, .times = {1e-3}}};
  return all;
}

Recorded lines(const MoeOutcome& all) {
  return recorded(kMetrics, [&](Recorder& record) { record_outcome(all, record); });
}

TEST(MoeRecord, has_rates_of_what_left_the_node_over_the_longest_of_all_ranks) {
  const auto all = lines(outcome());
  // 0.5 s out and 0.5 s back; 8,000 B of two steps and two nodes.
  EXPECT_EQ(all.at({"step_time", "zipf"}), (std::vector<double>{1, 1}));
  EXPECT_EQ(all.at({"tokens_rate", "zipf"}), (std::vector<double>{8, 8}));
  EXPECT_EQ(all.at({"network_rate", "zipf"}), (std::vector<double>{2000, 2000}));
  EXPECT_EQ(all.at({"network_bytes", "zipf"}), std::vector<double>{500});
  EXPECT_EQ(all.at({"own_share", "zipf"}), std::vector<double>{0.5});
  EXPECT_EQ(all.at({"algorithm_bytes", "zipf"}), std::vector<double>{2 * 16 * 4});
  EXPECT_FALSE(all.contains({"loopback_rate", "zipf"}));
}

TEST(MoeRecord, has_rates_of_all_slots_of_a_rank_over_each_part) {
  const auto all = lines(outcome());
  // Two ranks with 12 slots in two steps: six in each step, of 32 B.
  EXPECT_EQ(all.at({"dispatch_rate", "zipf"}), (std::vector<double>{384, 384}));
  EXPECT_EQ(all.at({"combine_rate", "zipf"}), (std::vector<double>{384, 384}));
  EXPECT_FALSE(all.contains({"dispatch_rate", "spread"}));
  EXPECT_FALSE(all.contains({"pair_time", "zipf"}));
}

TEST(MoeRecord, has_the_longest_pair_of_all_ranks_of_each_row) {
  auto of_gpus = outcome();
  MoeSteps fast = steps(0.25, 0.5, 0), slow = fast;
  fast.pair = 0.5;
  slow.pair = 0.75;
  of_gpus.families[Family::zipf].add({moe_steps_from(to_words(slow)), moe_steps_from(to_words(fast))}, 8);
  EXPECT_EQ(lines(of_gpus).at({"pair_time", "zipf"}), std::vector<double>{0.75});
}

TEST(MoeRun, that_does_not_fit_the_memory_is_refused_before_it_with_the_most_tokens_that_do) {
  ExchangeJob job{.routing = {.tokens = 200, .experts = 2, .top_k = 1, .ranks = 2}, .hidden = 16};
  std::vector<std::string> asked;
  collective::Fleet fleet(
      [&](std::string_view request, Seconds) {
        asked.push_back(nlohmann::json::parse(request).at("do"));
        return std::vector<std::string>{R"({"free": 1})", R"({"free": 1})"};
      },
      {"rank 0", "rank 1"}, "n", nullptr);
  const EngineRules rules{
      .admit = [](const EngineRules::Answers&) { return Bytes{1000}; },
      .needs = [](const ExchangeJob& one) { return static_cast<std::uint64_t>(one.routing.tokens) * 7; },
      .entered = nullptr};
  const Parameters given({{"families", std::string("spread")}});
  try {
    (void)conduct_exchange(fleet, given, job, rules);
    FAIL() << "nothing was thrown";
  } catch (const BadParameter& error) {
    EXPECT_NE(
        std::string(error.what()).find("a rank needs 1400 B at worst, 1000 B are available; give at most 71 tokens"),
        std::string::npos)
        << error.what();
  }
  EXPECT_EQ(asked, std::vector<std::string>{"hello"});
}

TEST(MoeRecord, of_routes_that_are_forced_to_be_even_has_no_rate) {
  const auto all = lines(outcome());
  EXPECT_TRUE(all.contains({"step_time", "spread"}));
  EXPECT_FALSE(all.contains({"tokens_rate", "spread"}));
  EXPECT_FALSE(all.contains({"network_rate", "spread"}));
}

TEST(MoeRecord, with_a_wrong_token_has_its_words_and_no_rate_of_any_family) {
  auto wrong = outcome();
  wrong.findings.add("token 3 of rank 0 was lost");
  const auto all = lines(wrong);
  EXPECT_EQ(all.at({"mismatches", ""}), std::vector<double>{1});
  EXPECT_EQ(all.at({"note", ""}).size(), 1U);
  EXPECT_FALSE(all.contains({"tokens_rate", "zipf"}));
  EXPECT_FALSE(all.contains({"network_rate", "zipf"}));
}

TEST(MoeRecord, of_one_machine_has_no_rate_of_a_network) {
  auto here = outcome();
  here.fabric = false;
  const auto all = lines(here);
  EXPECT_FALSE(all.contains({"network_rate", "zipf"}));
  EXPECT_FALSE(all.contains({"network_bytes", "zipf"}));
  EXPECT_TRUE(all.contains({"loopback_rate", "zipf"}));
}

TEST(MoeRecord, that_sent_nothing_has_no_rate_of_bytes) {
  auto own = outcome();
  own.families[Family::zipf].traffic.network_bytes = 0;
  const auto all = lines(own);
  EXPECT_FALSE(all.contains({"network_rate", "zipf"}));
  EXPECT_TRUE(all.contains({"tokens_rate", "zipf"}));
}

}  // namespace
}  // namespace assay::inference::moe_record_test
