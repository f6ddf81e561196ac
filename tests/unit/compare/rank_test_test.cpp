// rank_test: published tables of the rank-sum test, and cases that can be counted by hand.
#include "reports/compare/rank_test.h"

#include <gtest/gtest.h>

namespace assay::compare {
namespace {

std::vector<double> run(double first, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

RankTest one(std::vector<double> a, std::vector<double> b) {
  const Stratum stratum{.a = std::move(a), .b = std::move(b)};
  return rank_test({&stratum, 1}, 0.95);
}

TEST(RankTest, three_against_three_can_never_be_below_a_tenth) {
  const auto test = one({1, 2, 3}, {11, 12, 13});  // 2 of the 20 ways to choose 3 of 6
  EXPECT_NEAR(test.p, 0.1, 1e-12);
  EXPECT_NEAR(test.smallest_p, 0.1, 1e-12);
  EXPECT_TRUE(test.exact);
  EXPECT_FALSE(test.interval);
}

TEST(RankTest, seven_against_seven_apart_are_two_of_3432) {
  const auto test = one(run(1, 7), run(101, 7));
  EXPECT_NEAR(test.p, 2.0 / 3432, 1e-12);
}

TEST(RankTest, the_level_of_mann_and_whitneys_table_is_kept) {
  // n = m = 7: U = 8 is in the two-sided table of 5 %, U = 9 is not. b has 49 - U pairs above a.
  const std::vector<double> a = run(1, 7);
  const auto with = [&](std::vector<double> b) { return one(a, std::move(b)).p; };
  EXPECT_LE(with({5.5, 4.5, 4.6, 8, 9, 10, 11}), 0.05);  // U = 2 + 3 + 3 = 8
  EXPECT_GT(with({5.5, 4.5, 3.5, 8, 9, 10, 11}), 0.05);  // U = 2 + 3 + 4 = 9
}

TEST(RankTest, strata_add_up_where_none_alone_can_tell) {
  const std::vector<Stratum> strata(4, {.a = {1, 2, 3}, .b = {4, 5, 6}});
  const auto test = rank_test(strata, 0.95);
  EXPECT_NEAR(test.p, 2.0 / 160000, 1e-12);  // 20 to the power of 4
  ASSERT_TRUE(test.interval);
}

TEST(RankTest, a_difference_between_subjects_is_none_between_runs) {
  const auto test = rank_test(
      std::vector<Stratum>{{.a = {1, 2, 3}, .b = {1, 2, 3}}, {.a = {100, 200, 300}, .b = {100, 200, 300}}}, 0.95);
  EXPECT_EQ(test.p, 1);
  EXPECT_EQ(*test.shift, 1);
}

TEST(RankTest, the_interval_has_the_ranks_of_the_table) {
  // n = m = 4: P(U <= 0) = 1/70, so that the interval at 95 % goes from the smallest to the largest of 16 pairs.
  const auto test = one({10, 11, 12, 13}, {20, 21, 22, 23});
  ASSERT_TRUE(test.interval);
  EXPECT_DOUBLE_EQ(test.interval->low, 20.0 / 13);
  EXPECT_DOUBLE_EQ(test.interval->high, 23.0 / 10);
}

TEST(RankTest, values_all_alike_show_nothing_and_could_not) {
  const auto test = one({5, 5, 5, 5}, {5, 5, 5, 5});
  EXPECT_EQ(test.p, 1);
  EXPECT_EQ(test.smallest_p, 1);
}

TEST(RankTest, ties_are_counted_as_they_are) {
  // Of the 6 ways to deal {0, 0, 1, 1}, one puts both ones into b and one both into a.
  const auto test = one({0, 0}, {1, 1});
  EXPECT_NEAR(test.p, 2.0 / 6, 1e-12);
  EXPECT_FALSE(test.ratio);  // 0 has no ratio
  EXPECT_EQ(*test.shift, 1);
}

TEST(RankTest, an_outlier_weighs_one_rank) {
  EXPECT_EQ(one({1, 2, 3, 4}, {2.5, 3.5, 4.5, 1e9}).p, one({1, 2, 3, 4}, {2.5, 3.5, 4.5, 5}).p);
}

TEST(RankTest, nothing_on_one_side_is_no_test) {
  const auto test = one({1, 2, 3}, {});
  EXPECT_EQ(test.p, 1);
  EXPECT_FALSE(test.shift);
}

TEST(RankTest, the_normal_approximation_agrees_with_the_count_where_both_serve) {
  std::vector<Stratum> strata;
  for (int i = 0; i < 330; ++i) strata.push_back({.a = {1, 3, 5}, .b = {i % 5 == 0 ? 6.0 : 0.5, 2, 4}});
  const auto counted = rank_test(strata, 0.95);  // 1,980 values
  ASSERT_TRUE(counted.exact);
  for (int i = 0; i < 30; ++i) strata.push_back({.a = {1, 3, 5}, .b = {i % 5 == 0 ? 6.0 : 0.5, 2, 4}});
  const auto approximated = rank_test(strata, 0.95);
  ASSERT_FALSE(approximated.exact);
  EXPECT_LT(approximated.p, counted.p);  // more of the same
  EXPECT_GT(approximated.p, counted.p * counted.p);
}

TEST(Tarone, tests_that_cannot_reach_the_level_cost_nothing) {
  EXPECT_DOUBLE_EQ(tarone_threshold(std::vector<double>{0.1, 0.1, 0.1, 1e-6}, 0.05), 0.05);
  EXPECT_DOUBLE_EQ(tarone_threshold(std::vector<double>{1e-6, 1e-6, 0.04, 0.1}, 0.05), 0.025);
  EXPECT_DOUBLE_EQ(tarone_threshold(std::vector<double>{1e-6, 1e-6, 1e-6, 1e-6}, 0.05), 0.0125);
  EXPECT_DOUBLE_EQ(tarone_threshold({}, 0.05), 0.05);
}

}  // namespace
}  // namespace assay::compare
