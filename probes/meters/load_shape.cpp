// load_shape: the level at a time: ramps for groups and soaks, steps without a ramp for step and square.
#include "probes/meters/load_shape.h"

#include <algorithm>
#include <cmath>

namespace assay::meters {
namespace {

constexpr int kStairs = 4;  // 0, 25, 50, 75, 100 %, and down again
static_assert(kStairLevels == 2 * kStairs + 1);

/// Up in `ramp_s`, full for `hold_s`, down in `ramp_s`.
double trapezoid(double at_s, double ramp_s, double hold_s) {
  const double whole_s = 2 * ramp_s + hold_s;
  if (at_s < 0 || at_s >= whole_s) return 0;
  if (ramp_s <= 0) return 1;
  return std::clamp(std::min(at_s, whole_s - at_s) / ramp_s, 0.0, 1.0);
}

double group_s(const LoadShape& load) { return 2 * load.ramp_s + load.grow_hold_s; }

double shape_s(const LoadShape& load) {
  if (load.shape == "stairs") return kStairLevels * load.hold_s;
  if (load.shape == "step") return load.steps * 2 * load.hold_s;
  if (load.shape == "square") return load.hold_s;
  if (load.shape == "turns") return load.world * 2 * load.hold_s;
  return 2 * load.ramp_s + load.hold_s;
}

double shape_level(const LoadShape& load, double at_s) {
  if (at_s < 0 || at_s >= shape_s(load)) return 0;
  if (load.shape == "stairs") {
    const int stair = static_cast<int>(at_s / load.hold_s);
    return static_cast<double>(std::min(stair, kStairLevels - 1 - stair)) / kStairs;
  }
  if (load.shape == "step") return std::fmod(at_s, 2 * load.hold_s) >= load.hold_s ? 0 : 1;
  if (load.shape == "square") return std::fmod(at_s * load.frequency_hz, 1.0) < 0.5 ? 1 : 0;
  return trapezoid(at_s, load.ramp_s, load.hold_s);
}

/// One rank after another: first all idle, then only it.
double turn_level(const LoadShape& load, int rank, double at_s) {
  if (at_s < 0 || at_s >= shape_s(load)) return 0;
  const double turn_s = 2 * load.hold_s;
  if (static_cast<int>(at_s / turn_s) != rank) return 0;
  const TurnTime turn = turn_of(load.hold_s, load.ramp_s);
  return trapezoid(at_s - rank * turn_s - load.hold_s, turn.ramp_s, load.hold_s - 2 * turn.ramp_s);
}

}  // namespace

TurnTime turn_of(double hold_s, double ramp_s) {
  constexpr double kMostOfHold = 0.25;  // the rest is held at full load
  TurnTime turn{.ramp_s = std::min(ramp_s, kMostOfHold * hold_s)};
  turn.loaded_s = hold_s + turn.ramp_s;
  turn.length_s = hold_s - 2 * turn.ramp_s;
  return turn;
}

int groups_before(const LoadShape& load) {
  if (load.shape == "turns") return 0;  // one rank at a time is the smallest group throughout
  int groups = 0;
  for (long ranks = std::max(load.first_ranks, 1); ranks < load.world; ranks *= 2) ++groups;
  return groups;
}

double length_s(const LoadShape& load) { return groups_before(load) * group_s(load) + shape_s(load); }

double shape_begin_s(const LoadShape& load) { return groups_before(load) * group_s(load); }

HeldTime held(const LoadShape& load) {
  const double begin_s = shape_begin_s(load);
  const bool ramped = load.shape == "soak" || load.shape == "ramp";
  return ramped ? HeldTime{.begin_s = begin_s + load.ramp_s, .end_s = begin_s + load.ramp_s + load.hold_s}
                : HeldTime{.begin_s = begin_s, .end_s = begin_s + shape_s(load)};
}

double level_at(const LoadShape& load, int rank, double at_s) {
  if (at_s < 0) return 0;
  const int groups = groups_before(load);
  const int group = static_cast<int>(at_s / group_s(load));
  if (load.shape == "turns") return turn_level(load, rank, at_s);
  if (group >= groups) return shape_level(load, at_s - groups * group_s(load));
  const long ranks = static_cast<long>(std::max(load.first_ranks, 1)) << group;
  return rank < ranks ? trapezoid(at_s - group * group_s(load), load.ramp_s, load.grow_hold_s) : 0;
}

}  // namespace assay::meters
