// The one algorithm that all GPUs of a run take: sums over GPUs, short lists, ties, and their exchange.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "probes/cuda/algorithm_choice.h"

namespace assay::cuda {
namespace {

/// Under load as measured on an H200 for bf16, 8192 x 8192 x 8192 (docs/MEASUREMENTS.md).
const AlgorithmRates kH200 = {{"248", 658.4e12}, {"24", 673.4e12},  {"23", 670.7e12},  {"31", 650.9e12},
                              {"32", 649.6e12},  {"209", 646.8e12}, {"201", 680.2e12}, {"197", 677.8e12}};

std::vector<std::string> names(const AlgorithmRates& rates) {
  std::vector<std::string> result;
  for (const auto& one : rates) result.push_back(one.algorithm);
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST(shortlist, has_the_first_proposal_and_the_fastest_in_the_order_of_the_library) {
  EXPECT_EQ(shortlist(kH200, 1), (Names{"248"}));
  EXPECT_EQ(shortlist(kH200, 2), (Names{"248", "201"}));
  EXPECT_EQ(shortlist(kH200, 4), (Names{"248", "24", "201", "197"}));
  EXPECT_EQ(shortlist(kH200, 64), names(kH200));
}

TEST(shortlist, leaves_out_what_is_far_behind_but_never_the_first_proposal) {
  EXPECT_EQ(shortlist({{"first", 100}, {"best", 140}, {"near", 108}, {"far", 107}}, 8),
            (Names{"first", "best", "near"}));
}

TEST(still_close, are_those_within_one_per_cent_and_no_more_than_three) {
  EXPECT_EQ(still_close(kH200), (Names{"201", "197"}));
  EXPECT_EQ(still_close({{"a", 100}, {"b", 98.9}}), (Names{"a"}));
  EXPECT_EQ(still_close({{"a", 99.5}, {"b", 100}, {"c", 99.9}, {"d", 99.8}}), (Names{"b", "c", "d"}));
}

TEST(choose, takes_the_fastest_and_tells_its_margin) {
  const AlgorithmChoice choice = choose({{"first", 100}, {"best", 104}, {"other", 102}});
  EXPECT_EQ(choice.algorithm, "best");
  EXPECT_NEAR(choice.margin.value(), 104.0 / 102 - 1, 1e-12);
  EXPECT_EQ(names(choice.tried), (Names{"first", "best", "other"}));
  EXPECT_EQ(choose({{"alone", 0}}).margin, std::nullopt);
}

TEST(choose, takes_the_earlier_of_those_that_repeat_no_better) {
  EXPECT_EQ(choose({{"first", 99.8}, {"best", 100}}).algorithm, "first");
  EXPECT_LT(choose({{"first", 99.8}, {"best", 100}}).margin.value(), 0);
  EXPECT_EQ(choose({{"first", 99.6}, {"best", 100}}).algorithm, "best");
}

TEST(summed, are_rates_of_what_every_gpu_has) {
  const std::vector<AlgorithmRates> gpus = {{{"a", 1}, {"b", 2}, {"c", 3}}, {{"c", 10}, {"a", 20}}};
  const AlgorithmRates sums = summed(gpus);
  ASSERT_EQ(names(sums), (Names{"a", "c"}));
  EXPECT_EQ(sums[0].rate, 21);
  EXPECT_EQ(sums[1].rate, 13);
}

TEST(trial_board, gives_all_gpus_of_a_model_the_same_sums_and_leaves_other_models_alone) {
  const std::vector<AlgorithmRates> given = {
      {{"a", 5}, {"b", 4}}, {{"a", 1}, {"b", 4}}, {{"z", 9}}, {{"b", 3}, {"a", 1}}};
  const std::vector<std::string> models = {"H200", "H200", "A100", "H200"};
  TrialBoard board(given.size(), true);
  Barrier barrier(given.size());
  std::vector<std::vector<AlgorithmRates>> rounds(given.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < given.size(); ++i) {
      threads.emplace_back([&, i] {
        for (const double factor : {1.0, 2.0, 3.0}) {
          AlgorithmRates rates = given[i];
          for (auto& one : rates) one.rate *= factor;
          rounds[i].push_back(board.exchange(i, models[i], rates, barrier));
        }
      });
    }
  }
  for (std::size_t round = 0; round < 3; ++round) {
    const double factor = static_cast<double>(round + 1);
    for (const std::size_t i : {0U, 1U, 3U}) {
      EXPECT_EQ(choose(rounds[i][round]).algorithm, "b") << i;
      EXPECT_EQ(rounds[i][round].front().rate, 7 * factor) << i;
    }
    EXPECT_EQ(rounds[2][round].front().rate, 9 * factor);
  }
  board.keep("H200", {.algorithm = "b"});
  EXPECT_FALSE(board.earlier("H200")) << "those that are measured together decide together";
}

TEST(trial_board, gives_a_later_gpu_what_an_earlier_one_of_its_model_took) {
  TrialBoard board(2, false);
  Barrier alone(1);
  EXPECT_EQ(board.exchange(0, "H200", {{"a", 1}}, alone).front().rate, 1);
  EXPECT_FALSE(board.earlier("H200"));
  board.keep("H200", {.algorithm = "a"});
  EXPECT_EQ(board.earlier("H200").value().algorithm, "a");
  EXPECT_FALSE(board.earlier("A100"));
}

}  // namespace assay::cuda
