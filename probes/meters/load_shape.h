// load_shape: how hard every rank works at which moment of a load that begins with a few ranks and grows. Pure.
#pragma once

#include <string_view>

namespace assay::meters {

/// A load by its parameters; all times in s.
struct LoadShape {
  std::string_view shape;  ///< soak, stairs, step, square, ramp or turns
  double ramp_s = 5;       ///< from nothing to the full load and back, wherever the shape has no edge
  double hold_s = 120;  ///< soak: the full load; stairs: each stair; step: each half; square: the whole; ramp: the top;
                        ///< turns: all idle, then one rank, for each rank
  int steps = 5;        ///< of step: how many
  double frequency_hz = 1;  ///< of square
  double grow_hold_s = 10;  ///< each group of ranks before all of them
  int first_ranks = 1;      ///< ranks of the first group; each further one is twice as large
  int world = 1;            ///< all ranks
};

/// How many groups work before all ranks do: first_ranks, 2 first_ranks, 4 first_ranks, … below the world.
int groups_before(const LoadShape& load);

/// The length of the whole, with every group before it, in s.
double length_s(const LoadShape& load);

/// When all ranks work in the shape's own way: a soak's full load, a shape's first and last moment. In s from the
/// begin.
struct HeldTime {
  double begin_s = 0, end_s = 0;
};
HeldTime held(const LoadShape& load);

/// When the shape itself begins, after every group, in s from the begin.
double shape_begin_s(const LoadShape& load);
/// One turn of the shape turns, in s since its begin: all ranks idle before `loaded_s - ramp_s`; from `loaded_s` on its
/// rank works fully for `length_s`.
struct TurnTime {
  double loaded_s = 0, length_s = 0, ramp_s = 0;
};
TurnTime turn_of(double hold_s, double ramp_s);

/// The levels of the shape stairs, up and down again, each as long as the others: 0, 0.25, 0.5, 0.75, 1, 0.75, …, 0.
inline constexpr int kStairLevels = 9;

/// The share of its full load, 0 to 1, that `rank` is to work at `at_s` from the begin; 0 before it and after the end.
double level_at(const LoadShape& load, int rank, double at_s);

}  // namespace assay::meters
