// Steps of a load as meters of racks and feeds show them. All readings are made up.
#include "orchestrator/judge/metering/site_step.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "tests/unit/judge/metered_run.h"

namespace assay::judge::steps {
namespace {

constexpr double kBegin_s = 1.8e9, kHold_s = 60, kLow_w = 2000, kWay_w = 6000;
constexpr int kSteps = 3;
const Subject kRack{.kind = "rack", .id = "r1"}, kMeter{.kind = "meter", .id = "pdu"};

/// Three steps of a minute up and a minute down, as load_bank marks them.
Record load_of(int groups_before = 0) {
  Record load;
  std::vector<double> up, down;
  for (int i = 0; i < kSteps; ++i) {
    up.push_back(kBegin_s + 2 * i * kHold_s);
    down.push_back(kBegin_s + (2 * i + 1) * kHold_s);
  }
  for (const auto& [metric, samples] : {std::pair{"step_up", up}, std::pair{"step_down", down}})
    load.measurements.push_back(
        {.metric = metric, .unit = "s", .subject = {}, .at = {}, .samples = samples, .warmup = {}, .stopped = "fixed"});
  load.conditions = {{.name = "groups_before", .subject = {}, .value = std::int64_t{groups_before}},
                     {.name = "hold_end_s", .subject = {}, .value = kBegin_s + 2 * kSteps * kHold_s}};
  return load;
}

/// What a meter shows of it.
struct Look {
  double rise_s = 10, averaging_s = 1, interval_s = 0.5;
  std::optional<double> accuracy = 0.01;
  std::string doubts = "none";
  bool states_averaging = true;
};

double truth(double at_s, double rise_s) {
  double level = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double up_s = at_s - kBegin_s - 2 * i * kHold_s;
    if (up_s < 0) break;
    level = std::clamp(0.8 * up_s / rise_s, 0.0, 1.0) - std::clamp(0.8 * (up_s - kHold_s) / rise_s, 0.0, 1.0);
  }
  return kLow_w + kWay_w * level;
}

std::map<int, Record> watches_of(const Look& look) {
  Record record;
  std::vector<double> samples;
  const double from_s = kBegin_s - 60;
  for (double at_s = from_s; at_s < kBegin_s + 2 * kSteps * kHold_s; at_s += look.interval_s) {
    double mean = 0;
    for (int i = 0; i < 20; ++i)
      mean += truth(at_s + look.interval_s / 2 - look.averaging_s * (i + 0.5) / 20, look.rise_s) / 20;
    samples.push_back(mean);
  }
  record.measurements.push_back(
      {.metric = "total_power",
       .unit = "W",
       .subject = kRack,
       .at = {{"begin_s", from_s}, {"interval_s", look.interval_s}, {"meters", std::string("pdu")}},
       .samples = samples,
       .warmup = {},
       .stopped = "time_cap"});
  record.conditions.push_back({.name = "meter_doubts", .subject = kMeter, .value = look.doubts});
  if (look.states_averaging)
    record.conditions.push_back({.name = "averaging_s", .subject = kMeter, .value = look.averaging_s});
  if (look.accuracy)
    record.conditions.push_back({.name = "accuracy_declared", .subject = kMeter, .value = *look.accuracy});
  return {{1, record}};
}

std::vector<double> samples(const StepFigures& figures, std::string_view metric) {
  const auto found = std::ranges::find(figures.measurements, metric, &Measurement::metric);
  return found == figures.measurements.end() ? std::vector<double>{} : found->samples;
}

std::string refusal(const StepFigures& figures) {
  const auto found = figures.missing.find(kRack);
  return found == figures.missing.end() ? "none" : found->second;
}

TEST(site_step, a_meter_that_is_fast_enough_tells_every_rise_within_ten_percent) {
  const auto figures = steps_of(load_of(), watches_of({}));
  EXPECT_EQ(refusal(figures), "none");
  const auto rises = samples(figures, "rise_time");
  ASSERT_EQ(rises.size(), 3U);
  for (const double rise_s : rises) EXPECT_NEAR(rise_s, 10, 1);
  for (const double slope : samples(figures, kRamp)) EXPECT_NEAR(slope, 0.8 * kWay_w / 10, 0.08 * kWay_w / 10);
  EXPECT_EQ(samples(figures, "overshoot"), std::vector<double>(3, 0.0));
  for (const double settling_s : samples(figures, "settling_time")) EXPECT_NEAR(settling_s, 0.95 * 12.5, 1.5);
}

TEST(site_step, a_meter_of_a_minute_tells_no_rise_of_a_second) {
  const auto figures = steps_of(load_of(), watches_of({.rise_s = 0.1, .averaging_s = 20, .interval_s = 1}));
  EXPECT_TRUE(figures.measurements.empty());
  EXPECT_TRUE(refusal(figures).starts_with("Step 1 of 3 is not seen: it averages over 20 s")) << refusal(figures);
}

TEST(site_step, a_meter_that_is_read_once_a_second_tells_no_edge) {
  const auto figures = steps_of(load_of(), watches_of({.rise_s = 0.05, .averaging_s = 0.1, .interval_s = 1}));
  EXPECT_TRUE(figures.measurements.empty());
  EXPECT_TRUE(refusal(figures).starts_with("Step 1 of 3 is not seen: it is read every 1 s")) << refusal(figures);
}

TEST(site_step, what_is_not_stated_or_in_doubt_tells_nothing) {
  EXPECT_EQ(refusal(steps_of(load_of(), watches_of({.states_averaging = false}))),
            "The meter pdu states no averaging_s.");
  EXPECT_EQ(refusal(steps_of(load_of(), watches_of({.doubts = "stuck: 813 W"}))),
            "The meter pdu is in doubt: stuck: 813 W.");
  const auto classless = steps_of(load_of(), watches_of({.accuracy = std::nullopt}));
  EXPECT_EQ(samples(classless, "rise_time").size(), 3U);
  EXPECT_TRUE(samples(classless, kRamp).empty());
  EXPECT_EQ(refusal(classless), "A meter states no accuracy, so power_ramp would have no uncertainty.");
}

TEST(site_step, the_first_step_after_smaller_groups_has_no_quiet_time_and_is_left_out) {
  EXPECT_EQ(samples(steps_of(load_of(2), watches_of({})), "rise_time").size(), 2U);
}

TEST(site_step, a_load_without_marks_has_no_step) {
  EXPECT_EQ(refusal(steps_of({}, watches_of({}))), "The load has no step up after a time at another level.");
}

/// The same through the evidence of a run, with the meter of rack odd.
TEST(site_step, a_step_is_joined_where_a_requirement_asks_for_it) {
  for (const bool asked : {true, false}) {
    test::MeteredRun run;
    run.end_at("2026-11-23T10:03:00.000Z");
    run.hold(60, 120);
    test::Read read{.values = std::vector<double>(180, 1000), .accuracy = 0.01, .averaging_s = 1.0};
    for (std::size_t i = 60; i < 120; ++i)
      read.values[i] = 1000 + std::min(1.0, (static_cast<double>(i) - 59.5) / 20.0) * 3000;
    run.watch(1, read);
    const double begin_s = *number_in(run.load().conditions.at(0).value);
    for (const auto& [metric, at_s] : {std::pair{"step_up", begin_s}, std::pair{"step_down", begin_s + 60}})
      run.load().measurements.push_back({.metric = metric,
                                         .unit = "s",
                                         .subject = {},
                                         .at = {},
                                         .samples = {at_s},
                                         .warmup = {},
                                         .stopped = "fixed"});
    run.plan.profile.requirements.push_back({.id = "rise", .metric = "rise_time"});
    if (asked) run.step.requirements = {"rise"};
    const auto site = run.site();
    const auto& made = site.step.records.at(0).measurements;
    const auto found = std::ranges::find(made, "rise_time", &Measurement::metric);
    ASSERT_EQ(found != made.end(), asked);
    if (asked) {
      EXPECT_NEAR(found->samples.at(0), 16, 1);
    }
  }
}

}  // namespace
}  // namespace assay::judge::steps
