// The steady mark against plants whose own moment of steadiness is known. Every number is made up.
#include "probes/power/steadiness.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace assay::power {
namespace {

/// A number of unit variance, near enough to a normal one: twelve uniform numbers less their mean (splitmix64).
double normal(std::uint64_t seed, std::uint64_t index) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) {
    std::uint64_t x = (seed * 0x9e3779b97f4a7c15ULL) ^ ((index * 12 + i) * 0xd1342543de82ef95ULL);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    sum += static_cast<double>((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
  }
  return sum;
}

/// C dT/dt = P - G (T - T_in), with a power that rises with the temperature; a second body may warm up later.
struct Plant {
  double rise_k = 40, time_s = 120;
  double leak_share = 0.002;  ///< of the power, for each K
  double noise_k = 0, quantum_k = 0, power_noise = 0;
  double late_rise_k = 0, late_from_s = 0;
  std::uint64_t seed = 1;

  [[nodiscard]] double temperature_at(double t) const {
    const double late = t > late_from_s ? late_rise_k * (1 - std::exp(-(t - late_from_s) / time_s)) : 0;
    return 25 + rise_k * (1 - std::exp(-t / time_s)) + late;
  }
  [[nodiscard]] double slope_at(double t) const {
    const double late = t > late_from_s ? late_rise_k / time_s * std::exp(-(t - late_from_s) / time_s) : 0;
    return rise_k / time_s * std::exp(-t / time_s) + late;
  }
  [[nodiscard]] double power_at(double t) const { return 5000 * (1 + leak_share * (temperature_at(t) - 25)); }
  /// From here on the true slopes of temperature and power stay within the limits.
  [[nodiscard]] double steady_s(const SteadyLimits& limits) const {
    double last = 0;
    for (double t = 0; t < 20000; ++t) {
      const double power_slope = 5000 * leak_share * slope_at(t);
      if (slope_at(t) > limits.temperature_k_s || power_slope * limits.window_s > limits.power_share * power_at(t))
        last = t;
    }
    return last;
  }
};

constexpr double kHold_s = 1800, kLook_s = 10, kCap_s = 14400;

struct Marked {
  std::optional<double> at_s;
  int withdrawn = 0;
  std::string why_not;
};

/// Soaks `plant` in simulated time.
Marked soaked(const Plant& plant, const SteadyLimits& limits = {}, double hold_s = kHold_s) {
  Steadiness series(limits);
  SteadyMark mark(limits, hold_s);
  double next_s = kLook_s;
  for (double t = 1; t <= kCap_s && !mark.held(t); ++t) {
    const auto index = static_cast<std::uint64_t>(t);
    double seen_c = plant.temperature_at(t) + plant.noise_k * normal(plant.seed, index);
    if (plant.quantum_k > 0) seen_c = std::round(seen_c / plant.quantum_k) * plant.quantum_k;
    series.add("GPU-0", SteadyKind::temperature, t, seen_c);
    series.add("node", SteadyKind::power, t,
               plant.power_at(t) * (1 + plant.power_noise * normal(plant.seed + 99, index)));
    if (t < next_s) continue;
    next_s += kLook_s;
    mark.look(series, t);
  }
  return {.at_s = mark.at_s(), .withdrawn = mark.withdrawn(), .why_not = mark.why_not()};
}

TEST(steadiness, the_mark_is_never_before_the_plants_own_and_at_most_a_window_and_a_half_after_it) {
  const SteadyLimits limits;
  for (const double time_s : {20.0, 60.0, 180.0, 400.0, 900.0, 1800.0}) {
    for (const double rise_k : {5.0, 20.0, 60.0}) {
      const Plant plant{.rise_k = rise_k, .time_s = time_s};
      const auto marked = soaked(plant, limits);
      ASSERT_TRUE(marked.at_s) << time_s << " " << rise_k << " " << marked.why_not;
      const double own_s = plant.steady_s(limits);
      EXPECT_GE(*marked.at_s, own_s) << time_s << " " << rise_k;
      EXPECT_LE(*marked.at_s, std::max(own_s, 0.0) + 1.5 * limits.window_s) << time_s << " " << rise_k;
      EXPECT_EQ(marked.withdrawn, 0);
    }
  }
}

TEST(steadiness, noise_of_the_sensors_never_sets_the_mark_early) {
  const SteadyLimits limits;
  int marks = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Plant plant{.rise_k = 30,
                      .time_s = 300 + 20.0 * static_cast<double>(seed % 10),
                      .noise_k = 0.4,
                      .power_noise = 0.003,
                      .seed = seed};
    const auto marked = soaked(plant, limits);
    if (!marked.at_s) continue;
    ++marks;
    EXPECT_GE(*marked.at_s, plant.steady_s(limits)) << seed;
  }
  EXPECT_GE(marks, 57);  // and a machine with such sensors is found steady
}

TEST(steadiness, a_sensor_of_whole_kelvins_never_sets_the_mark_early) {
  const SteadyLimits limits;
  int marks = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Plant plant{.rise_k = 20 + static_cast<double>(seed) / 7,
                      .time_s = 200 + 30.0 * static_cast<double>(seed % 20),
                      .noise_k = seed % 2 == 0 ? 0.15 : 0,
                      .quantum_k = 1,
                      .seed = seed};
    const auto marked = soaked(plant, limits);
    if (!marked.at_s) continue;
    ++marks;
    EXPECT_GE(*marked.at_s, plant.steady_s(limits)) << seed;
  }
  EXPECT_GE(marks, 54);
}

TEST(steadiness, warm_coolant_that_comes_back_late_withdraws_the_mark) {
  const SteadyLimits limits;
  const Plant plant{.rise_k = 30, .time_s = 60, .late_rise_k = 15, .late_from_s = 1500};
  const auto marked = soaked(plant, limits);
  ASSERT_TRUE(marked.at_s) << marked.why_not;
  EXPECT_EQ(marked.withdrawn, 1);
  EXPECT_GE(*marked.at_s, plant.steady_s(limits));
}

TEST(steadiness, a_room_that_warms_up_all_the_time_is_never_steady_and_is_named) {
  const Plant plant{.rise_k = 4000, .time_s = 1e6};  // 0.24 K a minute
  const auto marked = soaked(plant);
  EXPECT_FALSE(marked.at_s);
  EXPECT_TRUE(marked.why_not.starts_with("GPU-0 moves by 0.2")) << marked.why_not;
}

TEST(steadiness, one_series_that_moves_keeps_all_others_waiting) {
  const SteadyLimits limits;
  Steadiness series(limits);
  for (double t = 1; t <= 700; ++t) {
    series.add("package-0", SteadyKind::temperature, t, 60);
    series.add("clock", SteadyKind::clock, t, 2.5e9 * (1 - 2e-5 * t));  // 1.2 % in ten minutes
  }
  EXPECT_EQ(series.unsteady(700),
            "clock moves by -1.21 % in 600 s, known to +-0.00 % (3 standard errors); 0.5 % is steady: it moves");
  EXPECT_EQ(series.moving(700), series.unsteady(700));
}

/// A GPU at its power limit in the quick run: a reading each 0.1 s, whose means of 0.4 s scatter by 0.3 %, a sensor of
/// whole kelvins that changes by one now and then, and a power that rises by `rise` in a window.
Marked rehearsed(double rise, std::uint64_t seed) {
  constexpr double kWindow_s = 8, kHold_s = 4, kCap_s = 30, kInterval_s = 0.1, kMean_s = 0.4;
  const SteadyLimits limits = rehearsal_limits(kWindow_s);
  Steadiness series(limits);
  SteadyMark mark(limits, kHold_s);
  for (double t = kInterval_s; t <= kCap_s && !mark.held(t); t += kInterval_s) {
    const auto part = static_cast<std::uint64_t>(t / kMean_s);
    series.add("GPU-0", SteadyKind::temperature, t, normal(seed + 50, part) > 2 ? 62 : 61);
    series.add("power", SteadyKind::power, t, 690 * (1 + 0.003 * normal(seed, part) + rise * t / kWindow_s));
    mark.look(series, t);
  }
  return {.at_s = mark.at_s(), .withdrawn = mark.withdrawn(), .why_not = mark.why_not()};
}

TEST(steadiness, a_quick_run_at_the_power_limit_can_be_steady_and_one_that_warms_up_is_not) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto level = rehearsed(0, seed);
    EXPECT_TRUE(level.at_s) << seed << " " << level.why_not;
    EXPECT_FALSE(rehearsed(0.02, seed).at_s) << seed;
  }
}

TEST(steadiness, what_is_not_known_well_enough_says_how_well_it_is_known) {
  Steadiness series({.window_s = 8});
  for (double t = 0.1; t <= 9; t += 0.1)
    series.add("power", SteadyKind::power, t, 690 * (1 + 0.003 * normal(1, static_cast<std::uint64_t>(t / 0.4))));
  EXPECT_TRUE(series.unsteady(9).ends_with("% (3 standard errors); 0.5 % is steady: not known to be steady"))
      << series.unsteady(9);
  EXPECT_EQ(series.moving(9), "");
}

TEST(steadiness, less_than_a_window_is_not_steady_however_quiet) {
  Steadiness series({});
  EXPECT_EQ(series.unsteady(10), "nothing was read yet");
  for (double t = 1; t <= 500; ++t) series.add("package-0", SteadyKind::temperature, t, 60);
  EXPECT_EQ(series.unsteady(500), "package-0 has less than 600 s of readings");
}

TEST(steadiness, a_sensor_that_stops_answering_ends_the_mark) {
  const SteadyLimits limits{.window_s = 60};
  Steadiness series(limits);
  SteadyMark mark(limits, 300);
  for (double t = 1; t <= 400; ++t) {
    series.add("package-0", SteadyKind::temperature, t, 60);
    if (t < 150) series.add("GPU-0", SteadyKind::temperature, t, 70);
    mark.look(series, t);
  }
  EXPECT_FALSE(mark.at_s());
  EXPECT_EQ(mark.why_not(), "GPU-0 has less than 60 s of readings");
}

}  // namespace
}  // namespace assay::power
