// Steps of several nodes: pairs by tournament, groups, the whole, and how what they measure is judged.
#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/pairing.h"
#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

using fixture::MemoryRun;
using fixture::profile;
using fixture::programs;
using fixture::site;

const std::vector<double> kSteady110(10, 110.0);

std::string error_of(const char* requirement) {
  const auto plan = make_plan(profile({requirement}), site(4), programs(), {});
  return plan ? "accepted" : plan.error().text();
}

}  // namespace

TEST(pairing, every_pair_meets_once_and_no_node_is_in_two_pairs_at_once) {
  for (const std::size_t nodes : {2U, 3U, 7U, 8U, 64U, 101U}) {
    std::set<Pair> met;
    for (const auto& round : tournament(nodes, rounds_for_all_pairs(nodes))) {
      std::set<std::size_t> seated;
      for (const auto& [low, high] : round) {
        EXPECT_LT(low, high);
        EXPECT_LT(high, nodes);
        EXPECT_TRUE(seated.insert(low).second && seated.insert(high).second) << nodes;
        EXPECT_TRUE(met.insert({low, high}).second) << nodes << ": " << low << " met " << high << " twice";
      }
      EXPECT_EQ(round.size(), nodes / 2);
    }
    EXPECT_EQ(met.size(), nodes * (nodes - 1) / 2);
  }
}

TEST(pairing, fewer_rounds_still_seat_every_node_and_one_node_has_no_partner) {
  EXPECT_EQ(tournament(64, 3).size(), 3U);
  EXPECT_TRUE(tournament(1, 5).empty());
}

TEST(pairing, chosen_pairs_are_those_of_the_choice_and_no_others) {
  const std::vector<Place> places = {{.node = "a", .rack = "", .leaf = "l1", .spines = {"s1"}},
                                     {.node = "b", .rack = "", .leaf = "l1", .spines = {"s1"}},
                                     {.node = "c", .rack = "", .leaf = "l2", .spines = {"s1"}},
                                     {.node = "d", .rack = "", .leaf = "l3", .spines = {"s2"}},
                                     {.node = "e", .rack = "", .leaf = "", .spines = {}}};
  const auto chosen = [&](PairChoice choice) {
    std::set<Pair> all;
    for (const auto& round : chosen_pairs(places, choice, 0)) all.insert(round.begin(), round.end());
    return all;
  };
  EXPECT_EQ(chosen(PairChoice::in_leaf), (std::set<Pair>{{0, 1}}));
  EXPECT_EQ(chosen(PairChoice::across_leaves), (std::set<Pair>{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
  EXPECT_EQ(chosen(PairChoice::in_spine), (std::set<Pair>{{0, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ(chosen(PairChoice::across_spines), (std::set<Pair>{{0, 3}, {1, 3}, {2, 3}}));
}

TEST(pairing, with_few_rounds_every_node_still_has_as_many_partners_as_there_are_and_were_asked_for) {
  std::vector<Place> places;
  for (int i = 0; i < 12; ++i)
    places.push_back({.node = std::to_string(i), .rack = "", .leaf = i < 8 ? "l1" : "l2", .spines = {}});
  std::vector<std::size_t> met(places.size());
  for (const auto& round : chosen_pairs(places, PairChoice::across_leaves, 2)) {
    for (const auto& [low, high] : round) ++met[low], ++met[high];
  }
  EXPECT_TRUE(std::ranges::all_of(met, [](std::size_t count) { return count >= 2; }));
  EXPECT_LT(std::accumulate(met.begin(), met.end(), std::size_t{0}), 2U * 8 * 4);
}

TEST(pairing, growing_groups_double_and_end_with_all) {
  const auto sizes = [](std::size_t nodes, std::vector<std::size_t> more = {}) {
    std::vector<std::size_t> all;
    for (const auto& group : growing_groups(std::vector<Place>(nodes), {.sizes = std::move(more)}))
      all.push_back(group.members.size());
    return all;
  };
  EXPECT_EQ(sizes(11, {5, 8, 24}), (std::vector<std::size_t>{2, 4, 5, 8, 11}));
  EXPECT_EQ(sizes(11), (std::vector<std::size_t>{2, 4, 8, 11}));
  EXPECT_EQ(sizes(8), (std::vector<std::size_t>{2, 4, 8}));
  EXPECT_EQ(sizes(2), (std::vector<std::size_t>{2}));
  EXPECT_TRUE(sizes(1).empty());
}

TEST(pairing, drawn_groups_hold_the_smaller_ones_and_follow_the_seed) {
  std::vector<Place> places;
  for (int i = 0; i < 12; ++i)
    places.push_back({.node = "n" + std::to_string(i), .rack = "", .leaf = "", .spines = {}});
  const auto groups = growing_groups(places, {.drawn = true, .seed = "a"});
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[1].name, "drawn-4");
  for (std::size_t i = 1; i < groups.size(); ++i)
    EXPECT_TRUE(
        std::ranges::equal(groups[i - 1].members, std::span(groups[i].members).first(groups[i - 1].members.size())));
  EXPECT_NE(groups.back().members, growing_groups(places, {.drawn = true, .seed = "b"}).back().members);
  EXPECT_EQ(std::set<std::size_t>(groups.back().members.begin(), groups.back().members.end()).size(), 12U);
}

TEST(placement, pairs_run_round_by_round_and_each_is_a_cell) {
  const auto plan = make_plan(profile({fixture::kPairs}), site(4), programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->steps.size(), 6U);
  EXPECT_EQ(plan->steps[0].id, "0001-fabric-n1--n4");
  EXPECT_EQ(plan->steps[0].nodes, (std::vector<std::string>{"n1", "n4"}));
  EXPECT_EQ(plan->steps[1].nodes, (std::vector<std::string>{"n2", "n3"}));
  EXPECT_EQ(plan->coverage[0].subject, (Subject{"pair", "n1+n4"}));
  EXPECT_EQ(plan->coverage.size(), 6U);
  EXPECT_TRUE(read_plan(plan_text(*plan), "p")) << read_plan(plan_text(*plan), "p").error().text();
}

TEST(placement, a_node_that_pauses_in_the_only_round_has_a_cell_that_is_not_measured) {
  constexpr const char* kOneRound =
      R"({"probe": "fabric", "scope": "pair", "rounds": 1, "limit": {"at_least": 100, "unit": "B/s"}})";
  const auto plan = make_plan(profile({kOneRound}), site(5), programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->coverage.size(), 3U);
  EXPECT_EQ(plan->coverage[2].subject, (Subject{"node", "n1"}));
  EXPECT_EQ(plan->coverage[2].step, "");
  EXPECT_NE(plan->coverage[2].reason.find("pauses"), std::string::npos) << plan->coverage[2].reason;
}

TEST(placement, what_one_node_shows_comes_before_pairs_and_the_whole_comes_last) {
  const auto plan =
      make_plan(profile({fixture::kWhole, fixture::kPairs, R"({"limit": {"at_least": 100, "unit": "B/s"}})"}), site(2),
                programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->steps.size(), 4U);
  EXPECT_EQ(plan->steps[0].nodes.size(), 1U);
  EXPECT_EQ(plan->steps[1].nodes.size(), 1U);
  EXPECT_EQ(plan->coverage[0].subject, (Subject{"cluster", "s"}));
}

TEST(placement, groups_are_what_the_site_says_of_racks) {
  const auto plan =
      make_plan(profile({R"({"probe": "fabric", "scope": "group", "limit": {"at_least": 100, "unit": "B/s"}})"}),
                site(5), programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->steps.size(), 2U);
  EXPECT_EQ(plan->steps[0].id, "0001-fabric-rack.odd");
  EXPECT_EQ(plan->steps[0].nodes, (std::vector<std::string>{"n1", "n3", "n5"}));
  EXPECT_EQ(plan->coverage[1].subject, (Subject{"group", "even"}));
}

TEST(placement, a_group_of_one_and_a_site_without_leaves_are_not_measured_and_say_so) {
  const auto racks =
      make_plan(profile({R"({"probe": "fabric", "scope": "group", "limit": {"at_least": 100, "unit": "B/s"}})"}),
                site(2), programs(), {});
  EXPECT_TRUE(racks->steps.empty());
  EXPECT_EQ(racks->coverage[0].reason, "the rack odd has one node, and a group needs two");
  const auto leaves = make_plan(
      profile({R"({"probe": "fabric", "scope": "group", "by": "leaf", "limit": {"at_least": 100, "unit": "B/s"}})"}),
      site(2), programs(), {});
  EXPECT_EQ(leaves->coverage.at(0).reason, "the site names no leaf of any node");
  EXPECT_EQ(make_plan(profile({fixture::kPairs}), site(1), programs(), {})->coverage.at(0).reason,
            "a pair needs two nodes, the site has one");
  EXPECT_EQ(make_plan(profile({fixture::kWhole}), site(1), programs(), {})->coverage.at(0).reason,
            "the site has one node, and a cluster needs two");
}

TEST(placement, a_node_that_no_rack_holds_leaves_a_cell_that_is_not_measured) {
  site::Site some = site(5);
  some.nodes[4].rack.clear();
  const auto plan =
      make_plan(profile({R"({"probe": "fabric", "scope": "group", "limit": {"at_least": 100, "unit": "B/s"}})"}), some,
                programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->steps.size(), 2U);
  EXPECT_EQ(plan->coverage.at(2).step, "");
  EXPECT_EQ(plan->coverage.at(2).reason, "the site names no rack of the node n5");
}

TEST(placement, a_scope_that_does_not_go_with_the_probe_is_refused) {
  EXPECT_NE(error_of(R"({"scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"}})")
                .find("requirements[0].scope: disk runs on one node, and the scope is cluster"),
            std::string::npos);
  EXPECT_THROW((void)profile({R"({"rounds": 3, "limit": {"at_least": 100, "unit": "B/s"}})"}), std::runtime_error);
}

TEST(placement, more_pairs_than_anybody_could_wait_for_are_refused_with_the_way_out) {
  const auto plan = make_plan(profile({fixture::kPairs}), site(2000), programs(), {});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text().find("requirements[0].rounds: 1999 rounds of pairs of 2000 nodes are 1999000 steps"),
            std::string::npos);
  const auto some = make_plan(
      profile({R"({"probe": "fabric", "scope": "pair", "rounds": 3, "limit": {"at_least": 100, "unit": "B/s"}})"}),
      site(2000), programs(), {});
  EXPECT_EQ(some->steps.size(), 3000U);
}

TEST(placement, a_pair_is_judged_by_what_its_rank_0_measured_and_only_when_both_ranks_are_whole) {
  MemoryRun run({fixture::kPairs}, 2);
  MemoryRun without = run;
  run.attempt(0, "exited", run.record_of_rank(0, kSteady110));
  run.add_rank(1, run.record_of_rank(1, {}));
  const judge::Verdict verdict = judge::judge(run.plan, "digest", run.journal, run.reader());
  EXPECT_EQ(verdict.overall, judge::Overall::accepted);
  EXPECT_EQ(verdict.results.at(0).subject, (Subject{"pair", "n1+n2"}));
  without.attempt(0, "exited", without.record_of_rank(0, kSteady110));
  const judge::Result result = judge::judge(without.plan, "digest", without.journal, without.reader()).results.at(0);
  EXPECT_EQ(result.outcome, judge::Outcome::error);
  EXPECT_NE(result.reason.find("rank 1 on n2: the record is refused"), std::string::npos);
}

TEST(placement, two_ranks_of_one_number_or_host_are_refused) {
  MemoryRun run({fixture::kPairs}, 2);
  run.attempt(0, "exited", run.record_of_rank(0, kSteady110));
  run.add_rank(1, run.record_of_rank(0, kSteady110));
  EXPECT_EQ(judge::judge(run.plan, "digest", run.journal, run.reader()).results.at(0).outcome, judge::Outcome::error);
}

TEST(placement, a_condition_that_only_the_other_rank_breaks_is_not_met) {
  MemoryRun run(
      {R"({"probe": "fabric", "scope": "pair", "limit": {"at_least": 100, "unit": "B/s"}, "conditions": [{"name": "direct_io", "equals": true}]})"},
      2);
  run.attempt(0, "exited", run.record_of_rank(0, kSteady110));
  run.add_rank(1, run.record_of_rank(1, {}, false));
  EXPECT_EQ(judge::judge(run.plan, "digest", run.journal, run.reader()).results.at(0).outcome,
            judge::Outcome::inconclusive);
}

}  // namespace assay::plan
