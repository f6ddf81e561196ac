// Early signs: what a rise of each class of counter and state means, and what a reset or another part does not mean.
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/drift/count_and_state.h"
#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/report.h"

namespace assay::drift {
namespace {

constexpr int kUnits = 20;

/// What the unit that is looked at shows in one night; its peers stay at `others`.
struct Shown {
  double value = 0, others = 0;
  std::string boot = "first";
  std::string at = "T01:00:00.000Z";
  struct Retest {
    double value = 0;
    std::string at = "T02:00:00.000Z";
  };
  std::vector<Retest> retests = {};  ///< of the same night
};

/// Flags after these nights of twenty units with one metric, the first of which shows `shown`.
std::vector<Flag> flags_after(const Metric& metric, const std::vector<Shown>& shown, const Policy& policy = {}) {
  Fleet fleet{.metrics = {metric}, .cohorts = {"drive"}};
  for (std::uint32_t i = 0; i < kUnits; ++i) {
    fleet.units.push_back({.id = "drive:S" + std::to_string(i),
                           .kind = "drive",
                           .serial = true,
                           .node = "n" + std::to_string(i),
                           .slot = "nvme0n1"});
    fleet.series.push_back({.unit = i, .metric = 0});
  }
  Detector detector(fleet, policy);
  int day = 0;
  for (const Shown& one : shown) {
    Night night{.date = Date{std::chrono::days{20'000 + day++}}};
    for (std::uint32_t i = 0; i < kUnits; ++i) {
      night.visits.push_back({.unit = i,
                              .run_sha256 = std::string(64, '1'),
                              .started = "2026-01-01" + (i == 0 ? one.at : "T01:00:00.000Z"),
                              .node = fleet.units[i].node,
                              .boot = i == 0 ? one.boot : "first"});
      night.readings.push_back({.series = i, .visit = i, .value = i == 0 ? one.value : one.others, .samples = 1});
    }
    for (const auto& retest : one.retests) {
      night.visits.push_back({.unit = 0,
                              .retest = true,
                              .run_sha256 = std::string(64, '2'),
                              .started = "2026-01-01" + retest.at,
                              .node = fleet.units[0].node,
                              .boot = one.boot});
      night.readings.push_back({.series = 0,
                                .visit = static_cast<std::uint32_t>(night.visits.size() - 1),
                                .value = retest.value,
                                .samples = 1});
    }
    detector.add(night);
  }
  return detector.report().flags;
}

Metric counter(const std::string& name, Course course, bool fatal) {
  return {.name = name,
          .probe = name.substr(0, name.find('.')),
          .revision = 1,
          .unit = "1",
          .type = MetricClass::count,
          .lower_is_better = true,
          .fatal = fatal,
          .course = course};
}

/// So many nights of `value`, then `last`.
std::vector<Shown> nights(int count, double value, std::vector<Shown> last, double others = 0) {
  std::vector<Shown> all(static_cast<std::size_t>(count), Shown{.value = value, .others = others});
  for (Shown& one : last) {
    one.others = others;
    all.push_back(one);
  }
  return all;
}

TEST(EarlySigns, one_more_media_error_of_a_drive_is_flagged_and_those_before_are_not) {
  const Metric metric = counter("health_drive.media_errors", Course::for_life, true);
  EXPECT_TRUE(flags_after(metric, nights(5, 7, {})).empty());
  const auto flags = flags_after(metric, nights(5, 7, {{.value = 8}}));
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].unit, "drive:S0");
  EXPECT_EQ(flags[0].rule, Rule::count);
  EXPECT_EQ(flags[0].ratio, 1);
}

TEST(EarlySigns, a_boot_and_a_rewritten_log_are_no_events_of_a_counter_for_life) {
  const Metric metric = counter("health_drive.media_errors", Course::for_life, true);
  EXPECT_TRUE(flags_after(metric, nights(5, 7, {{.value = 7, .boot = "second"}})).empty());
  EXPECT_TRUE(flags_after(metric, nights(5, 7, {{.value = 2}, {.value = 2}})).empty());
}

TEST(EarlySigns, what_was_counted_since_a_boot_is_new_and_a_counter_at_0_is_not) {
  const Metric metric = counter("health_links.link_downed", Course::since_boot, true);
  EXPECT_TRUE(flags_after(metric, nights(5, 3, {{.value = 0, .boot = "second"}})).empty());
  EXPECT_TRUE(flags_after(metric, nights(5, 3, {{.value = 0}, {.value = 0}})).empty());  // the driver was loaded again
  const auto flags = flags_after(metric, nights(5, 3, {{.value = 2, .boot = "second"}}));
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].ratio, 2);
}

TEST(EarlySigns, a_link_that_goes_down_again_the_next_night_is_confirmed) {
  const Metric metric = counter("health_links.link_downed", Course::since_boot, true);
  const auto once = flags_after(metric, nights(5, 0, {{.value = 1}, {.value = 1}, {.value = 1}, {.value = 1}}));
  ASSERT_EQ(once.size(), 1U);
  EXPECT_EQ(once[0].state, UnitState::watch);
  EXPECT_TRUE(once[0].words.ends_with(fmt::format(" None since {}.", date_text(once[0].raised + std::chrono::days(1)))))
      << once[0].words;
  const auto again = flags_after(metric, nights(5, 0, {{.value = 1}, {.value = 2}}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].state, UnitState::confirmed);
  EXPECT_EQ(again[0].words.find("None since"), std::string::npos) << again[0].words;
}

TEST(EarlySigns, new_events_raise_a_flag_again_that_was_only_watched) {
  const Metric metric = counter("health_links.link_downed", Course::since_boot, true);
  const std::vector<Shown> quiet(4, {.value = 1});
  std::vector<Shown> shown = nights(5, 0, quiet);
  ASSERT_EQ(flags_after(metric, shown).at(0).state, UnitState::watch);
  shown.push_back({.value = 3});
  const auto again = flags_after(metric, shown);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].state, UnitState::flagged);
  EXPECT_EQ(again[0].ratio, 2);
  EXPECT_EQ(again[0].relapses, 1);
  EXPECT_EQ(again[0].words.find("None since"), std::string::npos) << again[0].words;
  shown.push_back({.value = 4});
  EXPECT_EQ(flags_after(metric, shown).at(0).state, UnitState::confirmed);
  std::vector<Shown> each_run = nights(5, 0, {{.value = 1}, {.value = 0}, {.value = 0}, {.value = 0}, {.value = 2}});
  EXPECT_EQ(flags_after(counter("gemm.mismatches", Course::each_run, true), each_run).at(0).state, UnitState::flagged);
}

TEST(EarlySigns, events_that_a_test_of_the_same_night_shows_are_flagged_too) {
  for (const Course course : {Course::each_run, Course::since_boot, Course::for_life}) {
    const Metric metric = counter("health_links.link_downed", course, true);
    const auto flags = flags_after(metric, nights(5, 0, {{.value = 0, .retests = {{.value = 1}}}}));
    ASSERT_EQ(flags.size(), 1U) << word_of(course);
    EXPECT_EQ(flags[0].ratio, 1);
    EXPECT_EQ(flags[0].state, UnitState::flagged);
  }
}

TEST(EarlySigns, a_test_before_the_visit_of_its_night_counts_no_event_twice) {
  for (const Course course : {Course::since_boot, Course::for_life}) {
    const Metric metric = counter("health_links.link_downed", course, true);
    // One event, between a test at noon and the visit of the night that both belong to.
    const std::vector<Shown> shown = nights(
        5, 1, {{.value = 2, .at = "T23:00:00.000Z", .retests = {{1, "T12:00:00.000Z"}}}, {.value = 2}, {.value = 2}});
    const auto flags = flags_after(metric, shown);
    ASSERT_EQ(flags.size(), 1U) << word_of(course);
    EXPECT_NE(flags[0].state, UnitState::confirmed);
    // One event a night, the second of which comes between test and visit.
    const Metric usual = counter("health_links.symbol_errors", course, false);
    std::vector<Shown> rising;
    for (int i = 0; i < 30; ++i) rising.push_back({.value = 1.0 * i, .others = 1.0 * i});
    rising.back().at = "T23:00:00.000Z";
    rising.back().retests = {{28, "T12:00:00.000Z"}};
    EXPECT_TRUE(flags_after(usual, rising).empty()) << word_of(course);
  }
}

TEST(EarlySigns, a_confirmed_flag_does_not_age) {
  const Metric metric = counter("health_links.link_downed", Course::since_boot, true);
  Fleet fleet{.metrics = {metric}, .cohorts = {"nic"}};
  fleet.units.push_back({.id = "nic:S0", .kind = "nic", .serial = true, .node = "n0", .slot = "eth1"});
  fleet.series.push_back({.unit = 0, .metric = 0});
  Detector detector(fleet, {});
  const double values[] = {0, 0, 1, 2};
  for (int day = 0; day < 20; ++day) {
    Night night{.date = Date{std::chrono::days{20'000 + day}}};
    const bool measured = day < 4;
    night.visits.push_back({.unit = 0,
                            .state = measured ? VisitState::measured : VisitState::busy,
                            .run_sha256 = std::string(64, '1'),
                            .started = "2026-01-01T00:00:00.000Z",
                            .node = "n0",
                            .boot = "first"});
    if (measured) night.readings.push_back({.series = 0, .visit = 0, .value = values[day], .samples = 1});
    detector.add(night);
  }
  const auto report = detector.report();
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags[0].state, UnitState::confirmed);
  EXPECT_EQ(exit_code(report), 1);
}

TEST(EarlySigns, a_counter_that_rises_beyond_its_peers_is_flagged_and_as_all_of_them_it_is_not) {
  const Metric metric = counter("health_links.symbol_errors", Course::since_boot, false);
  EXPECT_EQ(flags_after(metric, nights(30, 0, {{.value = 40}})).size(), 1U);
  Policy strict;
  strict.false_flags.count = 0.001;  // one event in 600 nights of all is no sign by itself
  EXPECT_TRUE(flags_after(metric, nights(30, 0, {{.value = 1}}), strict).empty());
  std::vector<Shown> alike;
  for (int i = 0; i < 30; ++i) alike.push_back({.value = 50.0 * i, .others = 50.0 * i});
  EXPECT_TRUE(flags_after(metric, alike).empty());
}

TEST(EarlySigns, beyond_the_rate_of_a_bad_link_a_port_is_bad_though_all_are_alike) {
  const Metric metric = counter("health_links.symbol_errors", Course::since_boot, false);
  std::vector<Shown> below, beyond;
  for (int i = 0; i < 4; ++i) {
    below.push_back({.value = 2'800.0 * i, .others = 2'800.0 * i});
    beyond.push_back({.value = 3'000.0 * i, .others = 3'000.0 * i});
  }
  EXPECT_TRUE(flags_after(metric, below).empty());
  EXPECT_EQ(flags_after(metric, beyond).size(), static_cast<std::size_t>(kUnits));  // 120 an hour are 2,880 a day
  Policy other;
  other.metrics["health_links.symbol_errors"].most_per_day = 4'000;
  EXPECT_TRUE(flags_after(metric, beyond, other).empty());
}

TEST(EarlySigns, the_rate_of_all_units_leaves_out_those_with_a_flag) {
  PlainMetric metric({.type = MetricClass::count});
  metric.states.resize(2);
  metric.states[0].held = 1;
  const PlainInput inputs[] = {{.slot = 0, .value = 5}, {.slot = 1, .value = 1}};
  (void)metric.night(20'000, inputs, 1e-6);
  EXPECT_EQ(metric.events, 1);
  EXPECT_EQ(metric.exposure, 1);
}

TEST(EarlySigns, a_state_that_no_more_than_half_of_the_units_show_is_expected_of_none) {
  const auto bad = [](const std::vector<double>& values) {
    PlainMetric metric({.type = MetricClass::state});
    metric.states.resize(values.size());
    std::vector<PlainInput> inputs;
    for (const double value : values)
      inputs.push_back({.slot = static_cast<std::uint32_t>(inputs.size()), .value = value});
    std::vector<bool> all;
    for (const auto& one : metric.night(20'000, inputs, 0)) all.push_back(one.bad);
    return all;
  };
  EXPECT_EQ(bad({0, 0, 1, 1}), (std::vector<bool>{false, false, false, false}));
  EXPECT_EQ(bad({0, 1, 1, 1}), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(bad({0, 1, 1}), (std::vector<bool>{false, false, false})) << "three are too few";
}

TEST(EarlySigns, a_rate_is_that_of_the_days_between_two_visits) {
  const Metric metric = counter("health_links.receive_errors", Course::since_boot, false);
  Policy policy;
  policy.metrics["health_links.receive_errors"].most_per_day = 100;
  PlainMetric judged({.type = metric.type, .course = metric.course, .most_per_day = 100});
  judged.states.resize(1);
  (void)judged.night(10, std::vector<PlainInput>{{.slot = 0, .value = 0}}, 0);
  const auto after_five = judged.night(15, std::vector<PlainInput>{{.slot = 0, .value = 450}}, 0);
  const auto after_one = judged.night(16, std::vector<PlainInput>{{.slot = 0, .value = 600}}, 0);
  EXPECT_FALSE(after_five.at(0).bad);
  EXPECT_TRUE(after_one.at(0).bad);
}

TEST(EarlySigns, a_warning_that_a_drive_raises_is_flagged_each_night_that_it_lasts) {
  const Metric metric = counter("health_drive.critical_warnings", Course::each_run, true);
  const auto flags = flags_after(metric, nights(5, 0, {{.value = 1}, {.value = 1}}));
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].state, UnitState::confirmed);
}

TEST(EarlySigns, a_link_with_fewer_lanes_and_a_lost_path_are_not_as_expected) {
  const Metric width{.name = "health_drive.pcie_width",
                     .probe = "health_drive",
                     .revision = 1,
                     .unit = "1",
                     .type = MetricClass::state};
  EXPECT_TRUE(flags_after(width, nights(5, 4, {}, 4)).empty());
  const auto flags = flags_after(width, nights(5, 4, {{.value = 2}}, 4));
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].rule, Rule::state);
}

TEST(EarlySigns, light_that_fades_is_a_level_that_falls) {
  const Metric power{.name = "health_links.rx_power{lane=1}", .probe = "health_links", .revision = 1, .unit = "W"};
  std::vector<Shown> fading;
  for (int i = 0; i < 60; ++i) {
    const double noise = 1 + 0.002 * ((i * 7) % 5 - 2);
    fading.push_back({.value = 1e-3 * noise * (i < 40 ? 1 : 0.9), .others = 1e-3 * noise});
  }
  const auto flags = flags_after(power, fading);
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].unit, "drive:S0");
}

TEST(EarlySigns, a_policy_says_of_which_course_a_counter_is) {
  const Metric metric = counter("p.errors", Course::each_run, true);
  Policy policy;
  policy.metrics["p.errors"].course = Course::for_life;
  EXPECT_TRUE(flags_after(metric, nights(5, 7, {}), policy).empty());
  EXPECT_EQ(flags_after(metric, nights(5, 7, {})).size(), 1U);
  const auto read = read_policy(policy_text(policy), "policy.json");
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(read->metrics.at("p.errors").course, Course::for_life);
  EXPECT_EQ(read->metrics.at("health_links.symbol_errors").most_per_day, 2880);
}

}  // namespace
}  // namespace assay::drift
