// What energy counters show of a load that is switched. All readings are made up.
#include "probes/power/step_watch.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace assay::power {
namespace {

constexpr double kHalf_s = 10, kIdle_w = 60, kWay_w = 240;

/// Three steps of ten seconds up and ten down, after ten seconds of nothing.
SwitchTimes three_switches() { return {.up = {10, 30, 50}, .down = {20, 40, 60}}; }

/// Means over `interval_s` that end at their times.
std::vector<TimedValue> readings_of_level(const std::function<double(double)>& level, double end_s, double interval_s) {
  std::vector<TimedValue> all;
  for (double at = interval_s; at <= end_s; at += interval_s) {
    double mean = 0;
    for (int i = 0; i < 16; ++i) mean += level(at - interval_s * (i + 0.5) / 16) / 16;
    all.push_back({.at_s = at, .value = kIdle_w + kWay_w * mean});
  }
  return all;
}

std::function<double(double)> ramps(double ramp_s) {
  return [ramp_s](double t) {
    const double in_s = std::fmod(t + kHalf_s, 2 * kHalf_s);
    if (t < kHalf_s) return 0.0;
    return in_s < kHalf_s ? std::min(1.0, in_s / ramp_s) : std::max(0.0, 1 - (in_s - kHalf_s) / ramp_s);
  };
}

TEST(step_watch, a_ramp_of_two_seconds_is_seen_by_readings_of_50_ms) {
  const auto shown = steps_shown(readings_of_level(ramps(2), 70, 0.05), three_switches(), 0, 70, 0.05);
  ASSERT_EQ(shown.unseen, "");
  ASSERT_EQ(shown.steps.size(), 3U);
  for (const auto& one : shown.steps) {
    EXPECT_NEAR(one.rise_s, 1.6, 0.05);
    EXPECT_NEAR(one.slope, kWay_w / 2, 4);
    EXPECT_NEAR(one.high - one.low, kWay_w, 1);
    EXPECT_NEAR(one.settling_s, 1.9, 0.1);
  }
}

TEST(step_watch, an_edge_is_not_seen_and_has_no_rise) {
  const auto shown = steps_shown(readings_of_level(ramps(0.001), 70, 0.05), three_switches(), 0, 70, 0.05);
  EXPECT_TRUE(shown.steps.empty());
  EXPECT_TRUE(shown.unseen.starts_with("step 1 of 3: it averages over 0.05 s")) << shown.unseen;
}

TEST(step_watch, power_that_does_not_follow_the_load_has_no_step) {
  const auto shown =
      steps_shown(readings_of_level([](double) { return 0.5; }, 70, 0.05), three_switches(), 0, 70, 0.05);
  EXPECT_TRUE(shown.unseen.ends_with("does not stand out of its scatter")) << shown.unseen;
  EXPECT_EQ(steps_shown({}, {}, 0, 70, 0.05).unseen, "the load was never raised");
}

TEST(step_watch, the_swing_of_a_square_leaves_out_readings_with_an_edge) {
  SwitchTimes square;
  for (int i = 0; i < 10; ++i) {
    square.up.push_back(10 + i);
    square.down.push_back(10.5 + i);
  }
  const auto power =
      readings_of_level([](double t) { return t >= 10 && std::fmod(t, 1.0) < 0.5 ? 1.0 : 0.0; }, 20, 0.07);
  const auto all = swings(power, square, 0.07);
  ASSERT_EQ(all.size(), 9U);
  for (const double one : all) EXPECT_NEAR(one, kWay_w, 1e-6);
  EXPECT_TRUE(swings(readings_of_level([](double) { return 0.0; }, 20, 2), square, 2).empty());
}

}  // namespace
}  // namespace assay::power
