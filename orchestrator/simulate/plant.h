// plant: power and heat of a simulated hall, and readings of them: one truth through errors of the instrument's own.
// Every number here is made up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "probes/meters/reading.h"

namespace assay::simulate {

/// One change of a node's load: from `at_s` on it is `load`, from 0 to 1.
struct LoadChange {
  double at_s = 0;
  double load = 0;
};

/// A node: chips that follow the load at once, fans that follow its heat, a supply with losses.
struct PlantNode {
  double idle_w = 700, chips_w = 5000;
  double fans_w = 400;       ///< at full heat
  double heat_time_s = 120;  ///< time constant of the heat, which the fans follow
  std::vector<LoadChange> load = {};

  /// The load at a time, 0 before the first change.
  [[nodiscard]] double load_at(double time_s) const;
  /// The heat, from 0 to 1: the load through C dT/dt = P - G (T - T_in).
  [[nodiscard]] double heat_at(double time_s) const;
  /// Power in energy counters of the chips, in W: no fans, drives or losses.
  [[nodiscard]] double chips_at(double time_s) const;
  /// Input power of the supplies, in W.
  [[nodiscard]] double drawn_at(double time_s) const;
};

/// Input power of supplies that give `out_w`: their efficiency rises with the load from 0.90 towards 0.96.
constexpr double drawn_for_w(double out_w) {
  constexpr double kBest = 0.96, kLost = 0.06, kHalf_w = 700;
  return out_w / (kBest - kLost * kHalf_w / (kHalf_w + out_w));
}
static_assert(drawn_for_w(0) == 0);

/// How an instrument sees the truth. The default is an honest one of 1 %.
struct View {
  double gain = 1, offset = 0;
  double noise = 0.003;  ///< largest relative error of each single reading
  double lag_s = 0;      ///< delay of its readings
  double window_s = 1;   ///< a reading is the mean of this time
  double quantum = 1;    ///< the least step of the number
  double scale = 1;      ///< 0.1: a reader takes a number of 10 W for one of 1 W
  std::optional<double> stuck_from_s = {};
  std::optional<double> stale_from_s = {};  ///< its own time stops
  std::optional<double> dead_from_s = {};   ///< it answers 0
  std::optional<double> constant = {};      ///< taken from a table, and said to be
  bool wraps_16_bit = false;
  bool states_averaging = true;
  std::uint64_t seed = 1;  ///< of the noise
};

/// A quantity over time, by time in s.
using Truth = std::function<double(double)>;

/// Readings of `truth` through `view`, one a second from `begin_s` up to `end_s`.
std::vector<meters::MeterReading> seen(const Truth& truth, const View& view, double begin_s, double end_s,
                                       Quantity quantity = Quantity::power);

/// A number from -1 to 1 that depends only on its arguments.
double plant_noise(std::uint64_t seed, std::uint64_t index);

}  // namespace assay::simulate
