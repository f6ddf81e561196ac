// Routes: every family's imbalance is the one that follows from its rule, and no token has an expert twice.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "workloads/inference/moe_evidence.h"
#include "workloads/inference/routing.h"

namespace assay::inference {
namespace {

const RoutingShape kShape{.tokens = 96, .experts = 8, .top_k = 2, .ranks = 4, .seed = 7};

double imbalance(Family family, std::uint64_t step = 0) { return Router(kShape, family).imbalance(step); }

TEST(Routing, imbalances_are_those_of_the_rules) {
  EXPECT_DOUBLE_EQ(imbalance(Family::balanced), 1);
  EXPECT_DOUBLE_EQ(imbalance(Family::spread, 3), 1);
  EXPECT_DOUBLE_EQ(imbalance(Family::ragged_source), 1);
  EXPECT_DOUBLE_EQ(imbalance(Family::hot_rank), 2.5);        // (ranks + 1) / 2
  EXPECT_DOUBLE_EQ(imbalance(Family::empty_rank), 4.0 / 3);  // ranks / (ranks - 1)
  EXPECT_DOUBLE_EQ(imbalance(Family::burst, 6), 1);
  EXPECT_DOUBLE_EQ(imbalance(Family::burst, 7), 4);  // all on one of four
  EXPECT_GT(imbalance(Family::zipf), imbalance(Family::uniform));
}

TEST(Routing, a_hot_expert_has_every_token_and_the_others_what_is_left) {
  const RoutingShape shape{.tokens = 70, .experts = 8, .top_k = 2, .ranks = 4, .seed = 7};
  // The hot expert has 70 copies, each other 10; its rank 80 of 140, the mean of a rank is 35.
  EXPECT_DOUBLE_EQ(Router(shape, Family::hot_expert).imbalance(0), 80.0 / 35);
  EXPECT_DOUBLE_EQ(Router(shape, Family::moving_hotspot).imbalance(5), 80.0 / 35);
}

TEST(Routing, a_moving_hotspot_is_on_another_rank_in_each_step) {
  const Router router(kShape, Family::moving_hotspot);
  std::set<std::int64_t> hottest;
  for (std::uint64_t step = 0; step < 4; ++step) {
    const auto load = router.load(step);
    hottest.insert(std::ranges::max_element(load) - load.begin());
  }
  EXPECT_EQ(hottest.size(), 4U);
}

TEST(Routing, an_empty_rank_gets_nothing) { EXPECT_EQ(Router(kShape, Family::empty_rank).load(2).back(), 0); }

TEST(Routing, a_ragged_source_has_tokens_in_proportion_to_its_number) {
  const Router router(kShape, Family::ragged_source);
  EXPECT_EQ(router.first_token(0), 0);
  EXPECT_EQ(router.first_token(1), 9);
  EXPECT_EQ(router.first_token(4), 96);
}

TEST(Routing, of_every_family_chooses_experts_that_are_there_and_unlike_each_other) {
  for (const auto& [family, word] : words_of(Family{})) {
    const Router router(kShape, family);
    std::int64_t copies = 0;
    for (const std::int64_t of_rank : router.load(9)) copies += of_rank;
    EXPECT_EQ(copies, 192) << word;
    std::vector<std::int64_t> experts(2);
    for (std::int64_t token = 0; token < kShape.tokens; ++token) {
      router.choose(9, token, experts);
      EXPECT_NE(experts[0], experts[1]) << word;
      EXPECT_LT(std::ranges::max(experts), 8) << word;
      EXPECT_GE(std::ranges::min(experts), 0) << word;
    }
  }
}

TEST(Routing, a_steep_draw_of_all_experts_ends) {
  const RoutingShape all{.tokens = 4, .experts = 8, .top_k = 8, .ranks = 2, .seed = 1};
  EXPECT_DOUBLE_EQ(Router(all, Family::zipf).imbalance(0), 1);
}

TEST(Routing, does_not_depend_on_how_many_ranks_there_are) {
  RoutingShape other = kShape;
  other.ranks = 2;
  std::vector<std::int64_t> here(2), there(2);
  for (const Family family : {Family::uniform, Family::zipf, Family::hot_expert, Family::spread}) {
    Router(kShape, family).choose(3, 17, here);
    Router(other, family).choose(3, 17, there);
    EXPECT_EQ(here, there);
  }
}

std::string refusal(const std::string& list, const RoutingShape& shape = kShape) {
  try {
    (void)families_in(list, shape);
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(Routing, refuses_words_that_are_no_family_and_ranks_that_cannot_be_empty) {
  EXPECT_NE(refusal("zipf,even").find("families: 'even' is none of balanced, spread"), std::string::npos);
  EXPECT_NE(refusal("zipf,zipf").find("families: 'zipf' is there twice"), std::string::npos);
  EXPECT_NE(refusal("").find("families: '' is none of"), std::string::npos);
  const RoutingShape one{.tokens = 8, .experts = 8, .top_k = 2, .ranks = 1};
  EXPECT_NE(refusal("empty_rank", one).find("without the last rank 0 experts are left for 2 of each token"),
            std::string::npos);
}

TEST(Edges, every_two_ranks_meet_once_and_no_rank_twice_at_a_time) {
  for (const std::int64_t ranks : {2, 3, 4, 7, 8}) {
    std::set<std::pair<std::int64_t, std::int64_t>> met;
    for (std::int64_t round = 0; round < ranks + ranks % 2 - 1; ++round) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const std::int64_t peer = partner_in(round, rank, ranks);
        if (peer < 0) continue;
        EXPECT_EQ(partner_in(round, peer, ranks), rank);
        if (rank > peer) continue;
        EXPECT_TRUE(met.insert({rank, peer}).second);
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(ranks * (ranks - 1) / 2));
  }
}

TEST(Edges, those_of_a_rank_behind_a_slow_link_stand_out) {
  std::vector<Edge> edges;
  for (std::int64_t low = 0; low < 4; ++low) {
    for (std::int64_t high = low + 1; high < 4; ++high)
      edges.push_back({.low = low, .high = high, .within = false, .times = {high == 3 ? 20e-3 : 1e-3}});
  }
  const auto shares = edge_shares(edges);
  for (std::size_t i = 0; i < edges.size(); ++i) EXPECT_DOUBLE_EQ(shares[i].value(), edges[i].high == 3 ? 20 : 1);
  EXPECT_FALSE(edge_shares({edges[0], edges[1]})[0].has_value());
}

}  // namespace
}  // namespace assay::inference
