// plant: a model of a hall for tests: one truth, which each instrument sees through errors of its own. Every number
// here is made up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probes/meters/reading.h"

namespace assay::plant {

/// A number from -1 to 1 that depends on its arguments alone (splitmix64).
inline double noise(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + index;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) / 9007199254740992.0 * 2 - 1;
}

/// One change of a node's load: from `at_s` on it is `load`, from 0 to 1.
struct Change {
  double at_s = 0;
  double load = 0;
};

/// A node: chips that follow the load at once, fans that follow its heat, a supply with losses.
struct Node {
  double idle_w = 700, chips_w = 5000;
  double fans_w = 400;       ///< at full heat
  double heat_time_s = 120;  ///< of the fans
  std::vector<Change> load = {};

  [[nodiscard]] double load_at(double time_s) const {
    double now = 0;
    for (const auto& change : load) {
      if (change.at_s <= time_s) now = change.load;
    }
    return now;
  }
  /// What the heat has come to, from 0 to 1: the load through C dT/dt = P - G (T - T_in).
  [[nodiscard]] double heat_at(double time_s) const {
    double heat = 0, since_s = 0, now = 0;
    for (const auto& change : load) {
      if (change.at_s > time_s) break;
      heat = now + (heat - now) * std::exp(-(change.at_s - since_s) / heat_time_s);
      since_s = change.at_s;
      now = change.load;
    }
    return now + (heat - now) * std::exp(-(time_s - since_s) / heat_time_s);
  }
  /// What RAPL and NVML could see: chips alone.
  [[nodiscard]] double chips_at(double time_s) const { return 0.35 * idle_w + chips_w * load_at(time_s); }
  /// What comes out of the supplies.
  [[nodiscard]] double inner_at(double time_s) const {
    return idle_w + chips_w * load_at(time_s) + fans_w * heat_at(time_s);
  }
  /// What the supplies draw: their efficiency rises from 0.90 at no load to 0.96.
  [[nodiscard]] double drawn_at(double time_s) const {
    const double out_w = inner_at(time_s);
    return out_w / (0.96 - 0.06 * std::exp(-out_w / 1500));
  }
};

/// How an instrument sees the truth. The default is an honest one of 1 %.
struct View {
  double gain = 1, offset = 0;
  double noise = 0.003;  ///< relative, of each reading
  double lag_s = 0;      ///< it shows what was so long ago
  double window_s = 1;   ///< boxcar
  double quantum = 1;
  double scale = 1;  ///< 10: a reader takes 10 W for 1 W
  std::optional<double> stuck_from_s = {};
  std::optional<double> stale_from_s = {};  ///< its own time stands still
  std::optional<double> dead_from_s = {};   ///< it answers 0
  std::optional<double> constant = {};      ///< synthesised from a table
  bool wraps_16_bit = false;
  bool states_averaging = true;
  std::uint64_t seed = 1;
};

/// Readings of `truth` through `view`, one a second from `begin_s` to `end_s`.
inline std::vector<MeterReading> seen(const std::function<double(double)>& truth, const View& view, double begin_s,
                                      double end_s, Quantity quantity = Quantity::power) {
  constexpr int kParts = 8;  // of a window
  std::vector<MeterReading> readings;
  for (double now = begin_s; now < end_s; ++now) {
    const double at = std::min(now, view.stuck_from_s.value_or(now));
    double mean = 0;
    for (int i = 0; i < kParts; ++i) mean += truth(at - view.lag_s - view.window_s * (i + 0.5) / kParts) / kParts;
    double value =
        (mean * view.gain + view.offset) * (1 + view.noise * noise(view.seed, static_cast<std::uint64_t>(at)));
    if (view.constant) value = *view.constant;
    if (view.dead_from_s && now >= *view.dead_from_s) value = 0;
    value = std::round(value / view.quantum) * view.quantum * view.scale;
    if (view.wraps_16_bit) value = std::fmod(value, 65536);
    MeterReading one{.quantity = quantity,
                     .value = value,
                     .taken_s = now,
                     .quantum = view.quantum * view.scale,
                     .instrument = "plant"};
    one.origin = view.constant ? Origin::synthesised : Origin::measured;
    if (view.states_averaging) one.averaging_s = view.window_s;
    one.stated_s = std::min(now, view.stale_from_s.value_or(now));
    readings.push_back(std::move(one));
  }
  return readings;
}

/// Idle, half and full load of five minutes each, after five minutes of settling before each.
inline constexpr double kSettle_s = 300, kHold_s = 300;
inline std::vector<double> level_begins() { return {kSettle_s, 3 * kSettle_s, 5 * kSettle_s}; }
inline constexpr double kEnd_s = 6 * kSettle_s;
inline std::vector<Change> three_levels() { return {{0, 0}, {2 * kSettle_s, 0.5}, {4 * kSettle_s, 1}}; }

}  // namespace assay::plant
