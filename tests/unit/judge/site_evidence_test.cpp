// What the site's meters gave while a load was held: cut to its time, and open with a reason where they did not. Every
// reading is made up by this test.
#include "orchestrator/judge/metering/site_evidence.h"

#include <gtest/gtest.h>

#include "tests/unit/judge/metered_run.h"

namespace assay::judge {
namespace {

using test::kHeldFrom_s;
using test::kHeldTo_s;
using test::MeteredRun;

TEST(site_evidence, readings_before_and_after_the_load_do_not_count) {
  MeteredRun run;
  run.watch(1, {.from_s = 0, .values = std::vector<double>(10, 1)});
  run.watch(2, {.from_s = 10, .values = std::vector<double>(30, 1000)});
  run.watch(3, {.from_s = 40, .values = std::vector<double>(20, 2)});
  const auto site = run.site();
  ASSERT_EQ(site.step.records.size(), 1U);
  const auto power = run.only(site, "total_power");
  EXPECT_EQ(power.samples, std::vector<double>(static_cast<std::size_t>(kHeldTo_s - kHeldFrom_s), 1000));
  EXPECT_TRUE(power.at.empty());
  EXPECT_TRUE(site.missing.empty());
}

TEST(site_evidence, what_the_meters_doubted_is_a_condition_of_the_rack_that_they_feed) {
  MeteredRun run;
  run.watch(1, {.doubts = "stuck: 300 readings alike"});
  const auto site = run.site();
  const auto& conditions = site.step.records.at(0).conditions;
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].name, "meter_doubts");
  EXPECT_EQ(conditions[0].subject, (Subject{.kind = "rack", .id = "odd"}));
  EXPECT_EQ(std::get<std::string>(conditions[0].value), "stuck: 300 readings alike");
}

/// What the watches say of the meter's doubts, of the load: the second begins so late, with its first reading at
/// from_s.
std::vector<std::string> doubts_with_a_second_watch(const std::string& begin, double from_s) {
  MeteredRun run;
  run.watch(1, {.values = std::vector<double>(45, 1000)});
  run.watch(2, {.from_s = from_s, .values = {0, 0}, .doubts = "absent: 2 readings"});
  run.journal.watches[1].begin = begin;
  std::vector<std::string> doubts;
  const auto site = run.site();
  for (const auto& one : site.step.records.at(0).conditions)
    if (one.name == "meter_doubts") doubts.push_back(std::get<std::string>(one.value));
  return doubts;
}

TEST(site_evidence, a_watch_that_begins_after_the_load_and_before_the_end_of_the_attempt_says_nothing_of_it) {
  EXPECT_EQ(doubts_with_a_second_watch("2026-11-23T10:00:41.000Z", 50), std::vector<std::string>{"none"});
}

TEST(site_evidence, a_watch_with_readings_of_the_load_counts_whenever_it_began) {
  const std::vector<std::string> both = {"none", "absent: 2 readings"};
  EXPECT_EQ(doubts_with_a_second_watch("2026-11-23T10:00:41.000Z", 30), both);
  EXPECT_EQ(doubts_with_a_second_watch("2026-11-23T10:00:39.000Z", 50), both);
}

TEST(site_evidence, readings_that_cover_less_than_nine_tenths_of_the_load_are_left_out_with_their_share) {
  MeteredRun run;
  run.watch(1, {.from_s = 0, .values = std::vector<double>(25, 1000)});
  const auto site = run.site();
  EXPECT_TRUE(site.step.records.at(0).measurements.empty());
  EXPECT_EQ(site.missing.at({.kind = "rack", .id = "odd"}),
            "Readings cover 28 % of the 20 s of the load, 90 % are required.");
}

TEST(site_evidence, without_a_watch_nothing_was_read) {
  const MeteredRun run;
  const auto site = run.site();
  EXPECT_TRUE(site.step.records.at(0).measurements.empty());
  EXPECT_EQ(site.step.reason, "The meters were not read during the load.");
}

TEST(site_evidence, a_watch_that_is_over_before_the_attempt_does_not_count) {
  MeteredRun run;
  run.watch(1, {});
  run.journal.watches[0].begin = "2026-11-23T08:00:00.000Z";
  run.journal.watches[0].end = "2026-11-23T08:30:00.000Z";
  EXPECT_TRUE(run.site().step.records.at(0).measurements.empty());
}

TEST(site_evidence, a_watch_without_a_record_and_one_whose_record_is_damaged_are_named) {
  MeteredRun lost;
  lost.watch(1, {});
  lost.journal.watches[0].evidence.clear();
  lost.journal.watches[0].reason = "the agent is gone";
  EXPECT_EQ(lost.site().step.reason,
            "The meters were not read: watch 1 of power_feed left no record: the agent is gone.");
  MeteredRun damaged;
  damaged.watch(1, {});
  damaged.files.begin()->second.resize(damaged.files.begin()->second.size() / 2);
  EXPECT_TRUE(damaged.site().step.reason.starts_with("The meters were not read: the record of watch 1 is refused: "));
}

TEST(site_evidence, a_record_that_a_simulation_made_up_is_not_read) {
  MeteredRun run;
  run.watch(1, {.simulated = true});
  const auto site = run.site();
  EXPECT_TRUE(site.step.records.at(0).measurements.empty());
  EXPECT_EQ(site.step.reason, "The meters were not read: the record of watch 1 is made up by a simulation.");
}

TEST(site_evidence, a_node_whose_clock_is_off_does_not_choose_the_readings) {
  MeteredRun run;
  run.watch(1, {.values = std::vector<double>(60, 1000)});
  run.hold(-3600, -3580);
  const auto site = run.site();
  EXPECT_TRUE(site.step.records.at(0).measurements.empty());
  EXPECT_NE(site.step.reason.find("their clocks differ by more than a second"), std::string::npos);
}

TEST(site_evidence, a_probe_that_holds_no_load_is_judged_over_its_whole_attempt) {
  MeteredRun run;
  run.watch(1, {.values = std::vector<double>(60, 1000)});
  run.load().conditions.clear();
  EXPECT_EQ(run.only(run.site(), "total_power").samples.size(), 60U);
}

TEST(site_evidence, a_meter_that_was_not_read_leaves_its_rack_open_in_its_own_words) {
  MeteredRun run;
  run.watch(1, {.unread = "other at 10.0.0.1: no answer within 2 s; pdu at 10.0.0.7: refused"});
  EXPECT_EQ(run.site().missing.at({.kind = "rack", .id = "odd"}), "Not read: pdu at 10.0.0.7: refused.");
}

}  // namespace
}  // namespace assay::judge
