// Steps of known rise, overshoot and settling, through meters that average, sample, round and scatter.
#include "probes/core/step_response.h"

#include <cmath>
#include <cstdint>
#include <functional>

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr double kLow_w = 1000, kWay_w = 4000, kAt_s = 120, kUntil_s = 240;

double uniform(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (seed * 0x9e3779b97f4a7c15ULL) ^ (index * 0xd1342543de82ef95ULL);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

using Truth = std::function<double(double)>;  // the way done, at a time after the step

Truth ramp(double rise_s) {
  return [=](double t) { return std::clamp(t * 0.8 / rise_s, 0.0, 1.0); };
}
Truth first_order(double rise_s) {
  return [=](double t) { return t <= 0 ? 0.0 : 1 - std::exp(-t * std::log(9.0) / rise_s); };
}
/// A second order of damping 0.3: an overshoot of exp(-pi z / sqrt(1 - z^2)) = 0.372.
Truth ringing(double omega) {
  return [=](double t) {
    constexpr double kDamping = 0.3;
    const double root = std::sqrt(1 - kDamping * kDamping);
    return t <= 0 ? 0.0
                  : 1 - std::exp(-kDamping * omega * t) *
                            (std::cos(root * omega * t) + kDamping / root * std::sin(root * omega * t));
  };
}

/// How a meter looks.
struct Eye {
  double interval_s = 1, averaging_s = 1, noise = 0, quantum = 0, phase_s = 0;
  bool states = true;
  std::uint64_t seed = 1;
};

std::vector<TimedValue> readings_of(const Truth& truth, const Eye& eye) {
  constexpr int kParts = 50;
  std::vector<TimedValue> all;
  for (double at = eye.phase_s; at < kUntil_s + 20; at += eye.interval_s) {
    double mean = 0;
    for (int i = 0; i < kParts; ++i) mean += truth(at - eye.averaging_s * (i + 0.5) / kParts - kAt_s) / kParts;
    double value = kLow_w + kWay_w * mean;
    value *= 1 + eye.noise * (uniform(eye.seed, static_cast<std::uint64_t>(at * 1000)) - 0.5) * std::sqrt(12.0);
    if (eye.quantum > 0) value = std::round(value / eye.quantum) * eye.quantum;
    all.push_back({.at_s = at, .value = value});
  }
  return all;
}

std::expected<StepResponse, std::string> seen(const Truth& truth, const Eye& eye) {
  return step_response(readings_of(truth, eye),
                       {.at_s = kAt_s,
                        .until_s = kUntil_s,
                        .before_s = 0,
                        .interval_s = eye.interval_s,
                        .averaging_s = eye.states ? std::optional(eye.averaging_s) : std::nullopt,
                        .clock_s = 0});
}

TEST(step_response, a_meter_that_can_see_a_rise_tells_it_within_ten_percent) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const double rise_s : {0.5, 2.0, 10.0, 40.0}) {
      // Up to the slowest meter that is allowed.
      const double part = 0.03 + 0.16 * uniform(seed, 7);
      const Eye eye{.interval_s = part * rise_s,
                    .averaging_s = (0.19 - 0.16 * uniform(seed, 8)) * rise_s,
                    .noise = 0.003,
                    .quantum = 5,
                    .phase_s = uniform(seed, 9) * part * rise_s,
                    .seed = seed};
      for (const auto& truth : {ramp(rise_s), first_order(rise_s)}) {
        const auto one = seen(truth, eye);
        if (!one) continue;  // at the border a rise that is read 5 % short is too fast for the meter
        ++told;
        EXPECT_NEAR(one->rise_s / rise_s, 1, 0.1) << seed << " " << rise_s;
        EXPECT_NEAR(one->slope, 0.8 * kWay_w / one->rise_s, 0.02 * one->slope);
        EXPECT_NEAR(one->low, kLow_w, 20);
        EXPECT_NEAR(one->high, kLow_w + kWay_w, 60);
        EXPECT_LT(one->overshoot, 0.02);
      }
    }
  }
  EXPECT_GE(told, 145);  // of 160
}

TEST(step_response, no_meter_tells_a_rise_that_it_cannot_see) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const double rise_s : {0.001, 0.1, 1.0, 2.0}) {
      const bool slow = seed % 2 == 0;
      const Eye eye{.interval_s = slow ? 0.05 : 0.5 + 1.5 * uniform(seed, 3) + 0.25 * rise_s,
                    .averaging_s = slow ? 0.5 + 10 * uniform(seed, 4) + 0.25 * rise_s : 0.01,
                    .noise = 0.002,
                    .phase_s = uniform(seed, 5),
                    .seed = seed};
      const auto one = seen(ramp(rise_s), eye);
      ASSERT_FALSE(one) << seed << " " << rise_s << " told " << one->rise_s;
      EXPECT_TRUE(one.error().starts_with(slow ? "it averages over" : "it is read every")) << one.error();
    }
  }
}

TEST(step_response, a_minute_long_average_of_a_step_is_no_rise_of_48_s) {
  const auto one = seen(ramp(0.01), {.averaging_s = 60});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error(), "it averages over 60 s, and a fifth of the rise that it shows is 9.6 s");
}

TEST(step_response, a_meter_that_states_no_averaging_tells_nothing) {
  const auto one = seen(ramp(20), {.states = false});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error(), "its averaging window is not stated");
}

TEST(step_response, overshoot_and_settling_of_a_second_order_are_found) {
  constexpr double kOmega = 0.5;
  const auto one = seen(ringing(kOmega), {.interval_s = 0.1, .averaging_s = 0.1, .noise = 0.001});
  ASSERT_TRUE(one) << one.error();
  EXPECT_NEAR(one->overshoot, 0.372, 0.01);
  // The envelope exp(-z w t) falls to 5 % at 3.0 / (z w) = 20 s; the swing itself is inside for good a little earlier.
  EXPECT_GT(one->settling_s, 15);
  EXPECT_LT(one->settling_s, 20.5);
}

TEST(step_response, a_first_order_settles_after_three_time_constants) {
  const auto one = seen(first_order(10 * std::log(9.0)), {.interval_s = 0.5, .averaging_s = 0.5});
  ASSERT_TRUE(one) << one.error();
  EXPECT_NEAR(one->settling_s, 10 * std::log(20.0), 0.6);
  EXPECT_EQ(one->overshoot, 0);
}

TEST(step_response, a_step_down_has_a_rise_and_a_negative_slope) {
  const auto down = [](double t) { return 1 - ramp(8)(t); };
  const auto one = seen(down, {.interval_s = 0.5, .averaging_s = 0.5});
  ASSERT_TRUE(one) << one.error();
  EXPECT_NEAR(one->rise_s, 8, 0.4);
  EXPECT_LT(one->slope, 0);
}

TEST(step_response, a_step_that_drowns_in_scatter_is_none) {
  const auto one = seen([](double) { return 0.0; }, {.noise = 0.01});
  ASSERT_FALSE(one);
  EXPECT_TRUE(one.error().ends_with("does not stand out of its scatter")) << one.error();
  EXPECT_FALSE(seen([](double) { return 0.0; }, {.quantum = 1}));
}

TEST(step_response, without_readings_on_both_sides_there_is_none) {
  auto readings = readings_of(ramp(20), {});
  readings.erase(readings.begin(), readings.begin() + 110);
  const auto one = step_response(
      readings, {.at_s = kAt_s, .until_s = kUntil_s, .before_s = 119, .interval_s = 1, .averaging_s = 1, .clock_s = 0});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error(), "it has less than 3 readings before the step");
}

}  // namespace
}  // namespace assay
