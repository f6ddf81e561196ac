// controls: what counts as alike, and what is short of it.
#include "orchestrator/judge/locate/controls.h"

#include <gtest/gtest.h>

namespace assay::judge {
namespace {

Controls with(const std::vector<double>& shares, std::size_t size = 8) {
  Controls controls;
  for (const double share : shares) controls.add(size, {.shares = {share}});
  return controls;
}

TEST(controls, the_best_readings_of_a_size_that_lie_together_are_its_controls) {
  const Controls controls = with({1.04, 0.7, 1.042, 1.038, 0.72});
  EXPECT_EQ(controls.count(8), 3U);
  EXPECT_NEAR(controls.compare(8, {.shares = {0.7}})->control, 1.04, 1e-12);
}

TEST(controls, a_reading_is_short_of_them_and_not_of_the_limit) {
  const Controls high = with({1.04, 1.04, 1.04});
  EXPECT_TRUE(high.compare(8, {.shares = {1.01}})->is_short);
  EXPECT_FALSE(high.compare(8, {.shares = {1.03}})->is_short);
  const Controls low = with({0.95, 0.95, 0.95});
  EXPECT_FALSE(low.compare(8, {.shares = {0.945}})->is_short);
}

TEST(controls, sizes_are_never_mixed) {
  Controls controls = with({1.1, 1.1}, 4);
  EXPECT_FALSE(controls.compare(8, {.shares = {1.0}}));
  controls.add(8, {.shares = {1.0}});
  EXPECT_FALSE(controls.compare(8, {.shares = {1.0}})->is_short);
  EXPECT_TRUE(controls.compare(4, {.shares = {1.0}})->is_short);
}

TEST(controls, readings_that_scatter_are_told_apart_by_four_deviations) {
  EXPECT_EQ(with({1.0, 1.0, 1.0}).difference(0), 0.02);
  const Controls scattered = with({1.02, 1.01, 1.0, 0.99, 0.98, 1.015, 0.985, 1.005});
  EXPECT_EQ(scattered.count(8), 8U);
  EXPECT_GT(scattered.difference(0), 0.045);
  EXPECT_FALSE(scattered.compare(8, {.shares = {0.97}})->is_short);
}

TEST(controls, a_figure_that_scatters_in_all_groups_makes_none_of_them_short) {
  const std::vector<double> scattered = {0.78, 0.75, 0.73, 0.71, 0.70, 0.69, 0.68, 0.66, 0.64, 0.62};
  Controls controls = with(scattered);
  EXPECT_TRUE(controls.compare(8, {.shares = {0.66}})->is_short);
  controls.expect(8);
  for (const double share : scattered) EXPECT_FALSE(controls.compare(8, {.shares = {share}})->is_short);
  Controls steady = with({1.04, 1.041, 1.039, 1.04, 0.7, 0.72, 0.7, 0.71});
  steady.expect(8);
  EXPECT_TRUE(steady.compare(8, {.shares = {0.72}})->is_short) << "half of the groups with a faulty node";
  EXPECT_EQ(steady.difference(0), 0.02);
}

TEST(controls, the_limit_in_which_a_reading_is_worst_counts) {
  Controls controls;
  for (int i = 0; i < 3; ++i) controls.add(8, {.shares = {1.04, 1.5}});
  const auto compared = controls.compare(8, {.shares = {1.04, 1.2}});
  EXPECT_TRUE(compared->is_short);
  EXPECT_EQ(compared->share, 1.2);
  EXPECT_EQ(compared->control, 1.5);
}

TEST(controls, what_broke_is_no_control_and_forgotten_sizes_have_none) {
  Controls controls = with({1.04, 1.04});
  controls.add(8, {.broken = true, .shares = {}});
  EXPECT_EQ(controls.count(8), 2U);
  EXPECT_FALSE(controls.compare(8, {.broken = true, .shares = {}}));
  controls.forget(8);
  EXPECT_EQ(controls.count(8), 0U);
}

}  // namespace
}  // namespace assay::judge
