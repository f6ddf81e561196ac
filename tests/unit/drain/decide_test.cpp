// Which nodes are drained and which are put back.
#include "orchestrator/drain/decide.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/drain/fleet.h"

namespace assay::drain {
namespace {

using drift::UnitState;
using Counts = std::map<Ruling, int>;

const Decision& of(const Decisions& decisions, int number) {
  return *std::ranges::find(decisions.nodes, FleetOfDrain::name(number), &Decision::node);
}

/// The fleet's node `number` drained by us in the night `night`, as scheduler and account show it.
void drain_by_us(FleetOfDrain& fleet, int number, int night) {
  const std::string reason = fmt::format("assay:m:f{:011}:20241001", number);
  fleet.now[FleetOfDrain::name(number)] = {.drained = true, .reason = reason};
  Line line{.time = fmt::format("2024-10-{:02}T06:00:00.000Z", 4 + night),
            .night = day(night),
            .node = FleetOfDrain::name(number),
            .flag = fmt::format("f{:011}", number),
            .reason = reason};
  fleet.account.take(line);
  line.entry = Entry::done;
  fleet.account.take(line);
}

CleanSweep clean(const char* id, int october, int number, double budget_s = 900) {
  return {.id = id,
          .started = fmt::format("2024-10-{:02}T01:00:00.000Z", october),
          .budget_s = budget_s,
          .clean = {FleetOfDrain::name(number)},
          .records = {{FleetOfDrain::name(number), {fmt::format("{}{}", id, october)}}}};
}

}  // namespace

TEST(Drain, a_confirmed_flag_drains_its_node_with_a_reason_that_names_it) {
  FleetOfDrain fleet(400);
  fleet.flag(7);
  const auto decisions = fleet.drains();
  ASSERT_EQ(decisions.nodes.size(), 1U);
  EXPECT_EQ(decisions.nodes[0].ruling, Ruling::drain);
  EXPECT_EQ(decisions.nodes[0].reason, "assay:host_gemm.throughput-size-8-:f00000000007:20241004");
  EXPECT_TRUE(decisions.nodes[0].why.ends_with(" Action: drain (throughput).")) << decisions.nodes[0].why;
  fleet.report.flags[0].metric = "host_gemm.no_such{size=8}";
  EXPECT_EQ(fleet.drains().nodes[0].why.find("Action"), std::string::npos) << "not known";
  fleet.report.flags[0].metric = "health_gpu.remapping_failed{root=/}";
  EXPECT_TRUE(fleet.drains().nodes[0].why.ends_with(" Action: rma (remapping_failed)."));
}

TEST(Drain, a_flag_that_is_not_confirmed_drains_no_node) {
  FleetOfDrain fleet(400);
  fleet.flag(7).state = UnitState::flagged;
  fleet.flag(8).state = UnitState::watch;
  fleet.flag(9).state = UnitState::stale;
  fleet.flag(10).state = UnitState::repaired;
  EXPECT_TRUE(fleet.drains().nodes.empty());
}

// Row k of the acceptance tests.
TEST(Drain, of_100_flags_among_10000_nodes_the_worst_4_are_drained_and_the_others_queued) {
  FleetOfDrain fleet(10'000);
  for (int i = 0; i < 100; ++i) fleet.flag(i * 90, 0.95 - 0.001 * i);
  const auto decisions = fleet.drains();
  EXPECT_TRUE(decisions.alarm.empty()) << decisions.alarm;
  EXPECT_EQ(counts(decisions), (Counts{{Ruling::drain, 4}, {Ruling::queue, 96}}));
  for (int i = 96; i < 100; ++i) EXPECT_EQ(of(decisions, i * 90).ruling, Ruling::drain);
}

TEST(Drain, of_500_flags_among_10000_nodes_none_is_drained_and_there_is_an_alarm) {
  FleetOfDrain fleet(10'000);
  for (int i = 0; i < 500; ++i) fleet.flag(i * 20);
  const auto decisions = fleet.drains();
  EXPECT_EQ(counts(decisions), (Counts{{Ruling::queue, 500}}));
  EXPECT_NE(decisions.alarm.find("500 of 10000 nodes were flagged"), std::string::npos) << decisions.alarm;
}

TEST(Drain, in_a_fleet_that_is_visited_over_five_nights_a_fifth_as_many_flags_are_an_alarm) {
  FleetOfDrain fleet(10'000);
  fleet.report.coverage.units = 10'000;
  fleet.report.coverage.measured = 2'000;
  for (int i = 0; i < 41; ++i) fleet.flag(i * 100);
  EXPECT_NE(fleet.drains().alarm.find("41 of 2000 nodes were flagged"), std::string::npos) << fleet.drains().alarm;
  fleet.report.coverage.measured = 10'000;
  EXPECT_EQ(fleet.drains().alarm, "");
}

TEST(Drain, many_flags_of_one_night_stay_an_alarm_when_they_are_confirmed_nights_later) {
  FleetOfDrain fleet(1'000);
  for (int i = 0; i < 30; ++i) fleet.flag(i * 30, 0.9, 2);
  EXPECT_FALSE(fleet.drains().alarm.empty());
}

TEST(Drain, the_same_number_of_flags_over_many_nights_is_no_alarm) {
  FleetOfDrain fleet(1'000);
  for (int i = 0; i < 30; ++i) fleet.flag(i * 30, 0.9, i);
  EXPECT_TRUE(fleet.drains().alarm.empty());
}

TEST(Drain, in_a_small_fleet_one_node_may_always_be_drained_and_two_at_once_may_not) {
  FleetOfDrain one(8), two(8);
  one.flag(3);
  EXPECT_EQ(counts(one.drains()), (Counts{{Ruling::drain, 1}}));
  two.flag(3);
  two.flag(4);
  EXPECT_EQ(counts(two.drains()), (Counts{{Ruling::queue, 2}}));
}

// Row j of the acceptance tests.
TEST(Drain, nodes_that_others_drained_or_put_back_are_not_touched) {
  FleetOfDrain fleet(1'000);
  for (const int number : {10, 20, 30, 40, 50}) fleet.flag(number);
  fleet.now[FleetOfDrain::name(10)] = {.drained = true, .reason = "fan broken, ticket 12"};
  fleet.now[FleetOfDrain::name(20)] = {.drained = true, .busy = true, .reason = "maintenance"};
  fleet.now[FleetOfDrain::name(30)] = {.down = true};
  fleet.now.erase(FleetOfDrain::name(40));
  drain_by_us(fleet, 50, -1);
  fleet.account.take(
      {.night = day(-1), .entry = Entry::lifted, .node = FleetOfDrain::name(50), .flag = "f00000000050"});
  fleet.now[FleetOfDrain::name(50)] = {};
  const auto decisions = fleet.drains();
  EXPECT_EQ(counts(decisions), (Counts{{Ruling::leave, 5}}));
  EXPECT_EQ(of(decisions, 10).why, "already drained, not by assay: fan broken, ticket 12");
  EXPECT_EQ(of(decisions, 50).why,
            "it was put back by other means after a drain for this flag: it is not drained for it again");
}

TEST(Drain, a_new_flag_of_a_node_that_was_put_back_counts_anew) {
  FleetOfDrain fleet(1'000);
  fleet.account.take({.night = day(-9), .entry = Entry::lifted, .node = FleetOfDrain::name(50), .flag = "f0ld"});
  fleet.flag(50);
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::drain, 1}}));
}

TEST(Drain, a_leaf_loses_two_nodes_at_most) {
  FleetOfDrain fleet(10'000);
  for (int i = 0; i < 3; ++i) fleet.flag(i, 0.9 - 0.1 * i, i);
  const auto decisions = fleet.drains();
  EXPECT_EQ(counts(decisions), (Counts{{Ruling::drain, 2}, {Ruling::queue, 1}}));
  EXPECT_EQ(of(decisions, 0).why, "2 nodes of leaf l0 are out of service already");
}

TEST(Drain, those_whom_others_drained_count_for_the_cap_of_all) {
  FleetOfDrain fleet(100);
  for (int i = 0; i < 5; ++i) fleet.now[FleetOfDrain::name(i * 9)] = {.drained = true, .reason = "others"};
  fleet.flag(99);
  EXPECT_EQ(of(fleet.drains(), 99).why, "5 nodes are out of service already, at most 5 may be");
}

TEST(Drain, what_was_drained_earlier_tonight_counts_for_the_cap_of_the_night) {
  FleetOfDrain fleet(10'000);
  for (int i = 0; i < 3; ++i) drain_by_us(fleet, 1000 + i * 50, 0);
  for (int i = 0; i < 5; ++i) fleet.flag(i * 100, 0.9, i);
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::drain, 1}, {Ruling::queue, 4}}));
}

TEST(Drain, reports_of_several_nights_acted_on_at_once_have_the_cap_of_one) {
  FleetOfDrain fleet(10'000);
  for (int i = 0; i < 4; ++i) drain_by_us(fleet, 1000 + i * 50, -1);  // at 06:00 of the third
  for (int i = 0; i < 5; ++i) fleet.flag(i * 100, 0.9, i);
  fleet.time = day(-1) + std::chrono::hours(7);
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::queue, 5}}));
  fleet.time = day(-1) + std::chrono::hours(5);  // a clock that was set back opens no cap
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::queue, 5}}));
  fleet.time = day(0) + std::chrono::hours(6);
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::drain, 4}, {Ruling::queue, 1}}));
}

TEST(Drain, flags_with_a_common_leaf_are_for_people) {
  FleetOfDrain fleet(10'000);
  fleet.flag(1, 0.9, 0);
  fleet.flag(2, 0.9, 1);
  fleet.report.groups = {{.element = "leaf l0", .flags = {"f00000000001", "f00000000002"}}};
  const auto decisions = fleet.drains();
  EXPECT_EQ(counts(decisions), (Counts{{Ruling::leave, 2}}));
  EXPECT_EQ(of(decisions, 1).why, "it shares its flag with other nodes: look at leaf l0 first");
}

TEST(Drain, a_path_between_tenants_that_answers_drains_no_node_that_tried_it) {
  FleetOfDrain fleet(400);
  fleet.flag(7, 0.1).kind = "group";
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::leave, 1}}));
  EXPECT_NE(of(fleet.drains(), 7).why.find("is a figure of several nodes"), std::string::npos);
  fleet.flag(7, 0.9).kind = "node";  // one of its own, less far off, counts beside it
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::drain, 1}}));
}

TEST(Drain, a_simulated_report_drains_no_node) {
  FleetOfDrain fleet(400);
  fleet.flag(7);
  fleet.report.simulated = true;
  EXPECT_EQ(counts(fleet.drains()), (Counts{{Ruling::queue, 1}}));
}

TEST(Release, a_node_comes_back_after_two_clean_sweeps_of_15_minutes) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7)}), 7).why, "1 of 2 clean sweeps of 15 minutes since its drain");
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("a", 3, 7)}), 7).ruling, Ruling::leave);  // the same sweep twice
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 1, 7)}), 7).ruling,
            Ruling::leave);  // one of them before the drain
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 4, 7, 300)}), 7).ruling, Ruling::leave);  // too short
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 4, 8)}), 7).ruling, Ruling::leave);       // of another node
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 4, 7)}), 7).ruling, Ruling::release);
}

TEST(Release, a_copy_of_a_sweep_with_another_name_and_time_is_no_second_one) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  const auto first = clean("a", 3, 7);
  auto copy = clean("b", 4, 7);
  copy.records = first.records;
  EXPECT_EQ(of(fleet.releases({first, copy}), 7).why, "1 of 2 clean sweeps of 15 minutes since its drain");
  copy.records[FleetOfDrain::name(7)].insert("another");
  EXPECT_EQ(of(fleet.releases({first, copy}), 7).ruling, Ruling::leave);
  copy.records.clear();
  EXPECT_EQ(of(fleet.releases({first, copy}), 7).ruling, Ruling::leave) << "nothing measured it";
}

TEST(Release, a_sweep_that_is_still_to_come_shows_nothing) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  fleet.time = day(0);
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 4, 7)}), 7).why,
            "1 of 2 clean sweeps of 15 minutes since its drain");
  fleet.time = day(0) + std::chrono::hours(2);
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 4, 7)}), 7).ruling, Ruling::release);
}

TEST(Release, two_sweeps_with_one_partner_are_not_enough) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  auto first = clean("a", 3, 7), second = clean("b", 4, 7);
  first.partners[FleetOfDrain::name(7)] = second.partners[FleetOfDrain::name(7)] = {"n00001"};
  EXPECT_EQ(of(fleet.releases({first, second}), 7).why, "both clean sweeps had the same partner");
  second.partners[FleetOfDrain::name(7)] = {"n00002"};
  EXPECT_EQ(of(fleet.releases({first, second}), 7).ruling, Ruling::release);
}

TEST(Release, a_flag_that_is_open_or_a_reason_that_is_not_ours_holds_it) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  const std::vector sweeps = {clean("a", 3, 7), clean("b", 4, 7)};
  fleet.flag(7).state = UnitState::draining;
  EXPECT_EQ(of(fleet.releases(sweeps), 7).why, "its flag f00000000007 is draining");
  fleet.report.flags.clear();
  fleet.now[FleetOfDrain::name(7)].reason += " and the fan";
  EXPECT_EQ(of(fleet.releases(sweeps), 7).why, "its reason was changed by another user");
}

TEST(Release, a_part_that_is_missing_holds_it_and_one_that_waits_for_its_turn_does_not) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  const std::vector sweeps = {clean("a", 3, 7), clean("b", 4, 7)};
  fleet.report.coverage.overdue = {
      {.unit = "drive:4", .node = FleetOfDrain::name(7), .nights = 9, .last_state = "busy"},
      {.unit = "drive:5", .node = FleetOfDrain::name(8), .nights = 1, .last_state = drift::kMissing}};
  EXPECT_EQ(of(fleet.releases(sweeps), 7).ruling, Ruling::release);
  fleet.report.coverage.overdue[0].last_state = drift::kMissing;
  EXPECT_EQ(of(fleet.releases(sweeps), 7).why, "its part drive:4 is missing");
}

TEST(Release, the_third_drain_in_28_days_makes_a_lemon_that_people_decide_on) {
  FleetOfDrain fleet(400);
  for (const int night : {-20, -10, -3}) drain_by_us(fleet, 7, night);
  const std::vector sweeps = {clean("a", 3, 7), clean("b", 4, 7)};
  EXPECT_EQ(of(fleet.releases(sweeps), 7).why, "a lemon: drained 3 times in 28 days; people decide");
  FleetOfDrain long_ago(400);
  for (const int night : {-60, -40, -3}) drain_by_us(long_ago, 7, night);
  EXPECT_EQ(of(long_ago.releases(sweeps), 7).ruling, Ruling::release);
}

TEST(Release, an_alarm_over_many_flags_does_not_hold_up_a_release) {
  FleetOfDrain fleet(400);
  drain_by_us(fleet, 7, -3);
  for (int i = 0; i < 100; ++i) fleet.flag(100 + i);
  EXPECT_EQ(of(fleet.releases({clean("a", 3, 7), clean("b", 4, 7)}), 7).ruling, Ruling::release);
}

TEST(Reason, it_is_one_word_of_prefix_check_flag_and_date) {
  const Reason reason{.prefix = "assay", .check = "host gemm:" + std::string(61, 'a'), .flag = "01ab", .date = day(0)};
  EXPECT_EQ(reason_text(reason), "assay:host-gemm-" + std::string(50, 'a') + ":01ab:20241004");
}

}  // namespace assay::drain
