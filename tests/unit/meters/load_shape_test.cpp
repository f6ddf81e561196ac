// A load begins with the ranks of one rack and grows; every shape ends at nothing.
#include "probes/meters/load_shape.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace assay::meters {
namespace {

constexpr LoadShape kSoak{
    .shape = "soak", .ramp_s = 2, .hold_s = 20, .grow_hold_s = 6, .first_ranks = 2, .world = 7};  // 2, 4, then all 7

TEST(load_shape, groups_double_until_all_ranks_work) {
  EXPECT_EQ(groups_before(kSoak), 2);
  EXPECT_EQ(length_s(kSoak), 2 * 10 + 24);
  constexpr double kFirst = 5, kSecond = 15, kAll = 32;  // the middles of the groups
  for (int rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(level_at(kSoak, rank, kFirst), rank < 2 ? 1 : 0) << rank;
    EXPECT_EQ(level_at(kSoak, rank, kSecond), rank < 4 ? 1 : 0) << rank;
    EXPECT_EQ(level_at(kSoak, rank, kAll), 1) << rank;
  }
}

TEST(load_shape, a_soak_never_steps) {
  double last = 0, steepest = 0;
  for (double at_s = 0; at_s <= length_s(kSoak) + 1; at_s += 0.01) {
    const double now = level_at(kSoak, 6, at_s);
    steepest = std::max(steepest, now > last ? now - last : last - now);
    last = now;
  }
  EXPECT_LT(steepest, 0.0051);  // 0.01 s of a ramp of 2 s
  EXPECT_EQ(last, 0);
}

TEST(load_shape, it_is_held_while_all_ranks_are_at_the_full_load) {
  const HeldTime time = held(kSoak);
  EXPECT_EQ(time.end_s - time.begin_s, kSoak.hold_s);
  for (int rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(level_at(kSoak, rank, time.begin_s), 1);
    EXPECT_EQ(level_at(kSoak, rank, time.end_s), 1);
    EXPECT_LT(level_at(kSoak, rank, time.end_s + 0.1), 1);
  }
}

TEST(load_shape, stairs_go_up_and_down_in_quarters) {
  const LoadShape stairs{.shape = "stairs", .hold_s = 10};
  const double levels[] = {0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(level_at(stairs, 0, 10 * i + 5), levels[i]) << i;
  EXPECT_EQ(length_s(stairs), 90);
}

TEST(load_shape, steps_and_squares_are_half_of_the_time_at_the_full_load) {
  const LoadShape step{.shape = "step", .hold_s = 10, .steps = 3};
  const LoadShape square{.shape = "square", .hold_s = 60, .frequency_hz = 2};
  EXPECT_EQ(length_s(step), 60);
  for (const auto& load : {step, square}) {
    double sum = 0;
    constexpr int kLooks = 60'000;
    for (int i = 0; i < kLooks; ++i) sum += level_at(load, 0, 60.0 * (i + 0.5) / kLooks);
    EXPECT_NEAR(sum / kLooks, 0.5, 0.001);
    EXPECT_EQ(level_at(load, 0, 60.1), 0);
    EXPECT_EQ(level_at(load, 0, -0.1), 0);
  }
}

TEST(load_shape, turns_load_one_rank_at_a_time_after_nobody_works) {
  const LoadShape turns{.shape = "turns", .ramp_s = 2, .hold_s = 60, .first_ranks = 1, .world = 3};
  EXPECT_EQ(groups_before(turns), 0);
  EXPECT_EQ(length_s(turns), 360);
  const TurnTime turn = turn_of(turns.hold_s, turns.ramp_s);
  for (int rank = 0; rank < 3; ++rank) {
    for (int other = 0; other < 3; ++other) {
      const double begin_s = rank * 120.0;
      EXPECT_EQ(level_at(turns, other, begin_s + 59), 0);
      EXPECT_EQ(level_at(turns, other, begin_s + turn.loaded_s), other == rank ? 1 : 0);
      EXPECT_EQ(level_at(turns, other, begin_s + turn.loaded_s + turn.length_s - 0.1), other == rank ? 1 : 0);
      EXPECT_EQ(level_at(turns, other, begin_s + 120), 0);
    }
  }
}

}  // namespace
}  // namespace assay::meters
