// The due list: who is visited tonight, and that no unit is forgotten.
#include "orchestrator/sweep/due.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "orchestrator/plan/pairing.h"
#include "orchestrator/sweep/night.h"
#include "orchestrator/sweep/retests.h"

namespace assay::sweep {
namespace {

Night night(int number) { return Night(std::chrono::days(20'000 + number)); }

std::vector<DueNode> fleet(int count, int leaves) {
  std::vector<DueNode> nodes;
  for (int i = 0; i < count; ++i)
    nodes.push_back({.name = "n" + std::to_string(1000 + i), .leaf = "l" + std::to_string(i % leaves), .rack = ""});
  return nodes;
}

/// Sweeps for `nights` nights; `busy` nodes are never measured. The night of each node's visits.
std::map<std::string, std::vector<int>> sweep_for(int nights, std::vector<DueNode> nodes,
                                                  const std::set<std::string>& busy, const DueRule& rule) {
  std::map<std::string, std::vector<int>> visits;
  for (int tonight = 0; tonight < nights; ++tonight) {
    DueRule now = rule;
    now.tonight = night(tonight);
    for (const auto& entry : due_list(nodes, now)) {
      const auto node = std::ranges::find(nodes, entry.node, &DueNode::name);
      if (busy.contains(entry.node)) {
        ++node->missed;
      } else {
        node->missed = 0;
        node->last_visit = night(tonight);
        visits[entry.node].push_back(tonight);
      }
    }
  }
  return visits;
}

}  // namespace

TEST(Due, every_node_is_due_when_none_was_visited) {
  const auto due = due_list(fleet(8, 2), {.tonight = night(0), .rotate = 1, .max_age_nights = 5});
  EXPECT_EQ(due.size(), 8U);
  EXPECT_TRUE(due.front().never);
  EXPECT_TRUE(due.front().overdue);
}

TEST(Due, a_node_that_was_visited_tonight_is_not_due) {
  auto nodes = fleet(3, 1);
  nodes[1].last_visit = night(0);
  EXPECT_EQ(due_list(nodes, {.tonight = night(0)}).size(), 2U);
}

TEST(Due, a_visit_of_a_night_to_come_puts_no_measurement_off) {
  auto nodes = fleet(3, 1);
  nodes[1].last_visit = night(27'000);
  const auto due = due_list(nodes, {.tonight = night(0), .rotate = 5, .max_age_nights = 5});
  ASSERT_FALSE(std::ranges::find(due, nodes[1].name, &DueEntry::node) == due.end());
  EXPECT_TRUE(std::ranges::find(due, nodes[1].name, &DueEntry::node)->overdue);
}

TEST(Due, the_list_does_not_depend_on_the_order_of_the_site) {
  auto nodes = fleet(40, 4);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].last_visit = night(static_cast<int>(i % 4));
  const DueRule rule{.tonight = night(5), .rotate = 3, .max_age_nights = 9};
  const auto due = due_list(nodes, rule);
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937(7));
  EXPECT_EQ(due_list(nodes, rule), due);
}

TEST(Due, a_watched_node_comes_before_its_equals_and_one_beside_a_flag_before_others) {
  auto nodes = fleet(30, 1);
  for (auto& node : nodes) node.last_visit = night(0);
  nodes[17].watched = true;
  nodes[3].beside_flag = true;
  const auto due = due_list(nodes, {.tonight = night(2), .rotate = 10, .max_age_nights = 9});
  ASSERT_EQ(due.size(), 3U);
  EXPECT_EQ(due[0].node, nodes[17].name);
  EXPECT_EQ(due[1].node, nodes[3].name);
}

TEST(Due, each_leaf_has_its_share_of_a_night) {
  auto nodes = fleet(40, 4);
  for (auto& node : nodes) node.last_visit = night(0);
  std::map<std::string, int> of_leaf;
  for (const auto& entry : due_list(nodes, {.tonight = night(1), .rotate = 5, .max_age_nights = 9}))
    ++of_leaf[std::ranges::find(nodes, entry.node, &DueNode::name)->leaf];
  EXPECT_EQ(of_leaf, (std::map<std::string, int>{{"l0", 2}, {"l1", 2}, {"l2", 2}, {"l3", 2}}));
}

// Row q of the acceptance tests.
TEST(Due, with_a_tenth_of_the_nodes_always_busy_all_others_are_visited_within_the_maximum_age) {
  const auto nodes = fleet(200, 8);
  std::set<std::string> busy;
  for (int i = 0; i < 20; ++i) busy.insert(nodes[static_cast<std::size_t>(i * 10)].name);
  const DueRule rule{.rotate = 5, .max_age_nights = 5};
  const auto visits = sweep_for(40, nodes, busy, rule);
  for (const auto& node : nodes) {
    if (busy.contains(node.name)) continue;
    ASSERT_TRUE(visits.contains(node.name)) << node.name;
    const auto& when = visits.at(node.name);
    int before = 0;
    for (const int tonight : when) {
      EXPECT_LE(tonight - before, 5) << node.name;
      before = tonight;
    }
    EXPECT_GE(before, 40 - 5) << node.name;
  }
}

TEST(Due, nodes_that_are_always_busy_are_named_and_get_a_job_of_their_own_first) {
  auto nodes = fleet(10, 1);
  nodes[4].missed = kMissedForTarget;
  nodes[6].missed = kMissedForFinding;
  std::vector<std::string> targeted, findings;
  for (const auto& entry : due_list(nodes, {.tonight = night(9), .rotate = 5, .max_age_nights = 5})) {
    if (entry.targeted) targeted.push_back(entry.node);
    if (entry.finding) findings.push_back(entry.node);
  }
  std::ranges::sort(targeted);
  EXPECT_EQ(targeted, (std::vector<std::string>{nodes[4].name, nodes[6].name}));
  EXPECT_EQ(findings, (std::vector<std::string>{nodes[6].name}));
}

TEST(Due, an_overdue_node_is_due_beyond_the_share_of_the_night) {
  auto nodes = fleet(20, 2);
  for (auto& node : nodes) node.last_visit = night(0);
  EXPECT_EQ(due_list(nodes, {.tonight = night(5), .rotate = 5, .max_age_nights = 5}).size(), 20U);
  EXPECT_EQ(due_list(nodes, {.tonight = night(4), .rotate = 5, .max_age_nights = 5}).size(), 4U);
}

TEST(Due, a_clock_that_was_set_back_makes_no_unit_due_twice) {
  auto nodes = fleet(4, 1);
  for (auto& node : nodes) node.last_visit = night(3);
  EXPECT_EQ(due_list(nodes, {.tonight = night(2)}).size(), 0U);
}

TEST(Rotation, over_as_many_nights_as_there_are_rounds_every_node_meets_every_other_once) {
  for (const std::size_t count : {2U, 5U, 8U}) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back("n" + std::to_string(i));
    std::set<std::set<std::string>> met;
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < plan::rounds_for_all_pairs(count); ++i) {
      const auto order = rotated(all, night(static_cast<int>(i)));
      const auto rounds = plan::tournament(count, 1);
      for (const auto& [low, high] : rounds.front()) {
        met.insert({order[low], order[high]});
        ++pairs;
      }
    }
    EXPECT_EQ(met.size(), count * (count - 1) / 2) << count;
    EXPECT_EQ(pairs, met.size()) << count;
  }
}

TEST(Night, a_sweep_over_midnight_and_one_after_the_clock_went_back_have_one_night) {
  using namespace std::chrono;
  const auto evening = sys_days(2026y / 10 / 24) + hours(21);  // 23:00 where summer time is two hours ahead of UTC
  EXPECT_EQ(night_of(evening, hours(2)), sys_days(2026y / 10 / 24));
  EXPECT_EQ(night_of(evening + hours(4), hours(2)), sys_days(2026y / 10 / 24));
  EXPECT_EQ(night_of(evening + hours(5), hours(1)), sys_days(2026y / 10 / 24));  // summer time has ended
  EXPECT_EQ(night_of(evening + hours(3), hours(2)), sys_days(2026y / 10 / 24));  // set back by an hour
}

TEST(Night, the_end_of_a_sweep_is_the_next_moment_at_which_the_clock_shows_it) {
  using namespace std::chrono;
  const auto now = sys_days(2026y / 1 / 5) + hours(23);
  EXPECT_EQ(next_time("06:00", now, hours(1)), sys_days(2026y / 1 / 6) + hours(5));
  EXPECT_EQ(next_time("01:00", now, hours(1)), sys_days(2026y / 1 / 6) + hours(0));
  EXPECT_EQ(next_time("24:00", now, hours(0)), std::nullopt);
  EXPECT_EQ(next_time("6:00", now, hours(0)), std::nullopt);
}

namespace {

/// The pairs of the first round among `order`.
std::set<std::set<std::string>> first_pairs(const std::vector<std::string>& order) {
  std::set<std::set<std::string>> pairs;
  for (const auto& round : plan::tournament(order.size(), 1)) {
    for (const auto& [low, high] : round) pairs.insert({order[low], order[high]});
  }
  return pairs;
}

}  // namespace

TEST(RetestOrder, gives_each_node_a_partner_that_it_has_not_had) {
  const std::vector<RetestNode> wanted = {{.name = "a", .with_partner = true, .partners = {"x", "y"}},
                                          {.name = "b", .with_partner = true, .partners = {"z", "y"}}};
  for (const char* key : {"1", "2", "3", "4", "5", "6", "7", "8"}) {
    const auto order = retest_order(wanted, {"x", "y", "z"}, key);
    EXPECT_EQ(order.size(), 4U);
    EXPECT_EQ(first_pairs(order), (std::set<std::set<std::string>>{{"a", "z"}, {"b", "x"}}));
  }
}

TEST(RetestOrder, chooses_other_partners_with_another_key) {
  std::vector<std::string> others;
  for (int i = 0; i < 64; ++i) others.push_back("n" + std::to_string(i));
  std::set<std::string> partners;
  for (int i = 0; i < 20; ++i) {
    const auto order = retest_order(std::vector{RetestNode{.name = "a", .with_partner = true, .partners = {}}}, others,
                                    std::to_string(i));
    ASSERT_EQ(order.size(), 2U);
    partners.insert(order.back());
  }
  EXPECT_GT(partners.size(), 12U);
}

TEST(RetestOrder, leaves_alone_what_needs_no_partner_and_joins_the_wanted_where_no_other_is_left) {
  const RetestNode a{.name = "a", .with_partner = true, .partners = {}};
  const RetestNode b{.name = "b", .with_partner = true, .partners = {}};
  const RetestNode c{.name = "c", .with_partner = false, .partners = {}};
  EXPECT_EQ(retest_order(std::vector{c}, {"x"}, "k"), std::vector<std::string>{"c"});
  EXPECT_EQ(first_pairs(retest_order(std::vector{a, c}, {"x"}, "k")), (std::set<std::set<std::string>>{{"a", "x"}}));
  EXPECT_EQ(first_pairs(retest_order(std::vector{a, b}, {}, "k")), (std::set<std::set<std::string>>{{"a", "b"}}));
  const auto with_one = first_pairs(retest_order(std::vector{a, b, c}, {"x"}, "k"));
  EXPECT_TRUE(with_one.contains({"a", "x"}));
  EXPECT_EQ(with_one.size(), 2U);
}

}  // namespace assay::sweep
