// plant: what a simulated hall draws and gives off, and how an instrument sees it: one truth through errors of the
// instrument's own. Every number here is made up.
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
  /// What the heat has come to, from 0 to 1: the load through C dT/dt = P - G (T - T_in).
  [[nodiscard]] double heat_at(double time_s) const;
  /// What energy counters of the chips see, in W: no fans, drives or losses.
  [[nodiscard]] double chips_at(double time_s) const;
  /// What the supplies draw, in W.
  [[nodiscard]] double drawn_at(double time_s) const;
};

/// What supplies draw that give `out_w`: their efficiency rises with the load from 0.90 towards 0.96.
constexpr double drawn_for_w(double out_w) {
  constexpr double kBest = 0.96, kLost = 0.06, kHalf_w = 700;
  return out_w / (kBest - kLost * kHalf_w / (kHalf_w + out_w));
}
static_assert(drawn_for_w(0) == 0);

/// How an instrument sees the truth. The default is an honest one of 1 %.
struct View {
  double gain = 1, offset = 0;
  double noise = 0.003;  ///< largest relative error of each reading by itself
  double lag_s = 0;      ///< it shows what was so long ago
  double window_s = 1;   ///< a reading is the mean of this time
  double quantum = 1;    ///< the least step of the number
  double scale = 1;      ///< 0.1: a reader takes a number of 10 W for one of 1 W
  std::optional<double> stuck_from_s = {};
  std::optional<double> stale_from_s = {};  ///< its own time stands still
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

/// A number from -1 to 1 that depends on its arguments alone.
double plant_noise(std::uint64_t seed, std::uint64_t index);

}  // namespace assay::simulate
