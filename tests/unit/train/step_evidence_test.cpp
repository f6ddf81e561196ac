// Figures of steps from the ranks' times and prints: stragglers, tails, and the rank that failed.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "workloads/train/graph/step_groups.h"
#include "workloads/train/step/package_energy.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::train {
namespace {

/// A rank whose steps take `wall_s`, `collective_s` of it in collectives.
RankSteps rank_of(double wall_s, double collective_s, std::size_t steps = 4) {
  return {
      .wall = std::vector(steps, wall_s), .collective = std::vector(steps, collective_s), .optimizer = {}, .alone = {}};
}

TEST(Standings, name_the_rank_that_waits_for_nobody) {
  const ParallelPlan plan{.layers = 2, .dp = 4};
  const auto all = standings(plan, {rank_of(10, 3), rank_of(10, 3.1), rank_of(10, 0.5), rank_of(10, 2.9)});
  EXPECT_DOUBLE_EQ(all[2].last_share, 1);
  EXPECT_DOUBLE_EQ(all[0].last_share + all[1].last_share + all[3].last_share, 0);
  EXPECT_DOUBLE_EQ(all[2].self_time[0], 9.5);
  EXPECT_DOUBLE_EQ(all[2].self_share.value(), 9.5 / 7);
  EXPECT_DOUBLE_EQ(all[2].lateness[0], 2.6);
  EXPECT_DOUBLE_EQ(all[1].lateness[0], 0);
}

TEST(Standings, compare_only_ranks_at_one_place_of_the_pipeline) {
  const ParallelPlan plan{.layers = 2, .pp = 2};
  const auto all = standings(plan, {rank_of(10, 1), rank_of(10, 5)});
  EXPECT_FALSE(all[0].self_share.has_value());
  EXPECT_DOUBLE_EQ(all[0].last_share, 0);
  EXPECT_DOUBLE_EQ(all[1].lateness[0], 0);
}

TEST(TailShare, of_one_stall_in_fifty_steps_is_a_fiftieth) {
  std::vector<double> steps(50, 0.1);
  steps[31] = 0.3;
  EXPECT_DOUBLE_EQ(tail_share(steps), 0.02);
  EXPECT_DOUBLE_EQ(tail_share(std::vector<double>(50, 0.1)), 0);
}

TEST(ProjectedShare, has_the_values_of_one_stall_in_a_hundred_thousand) {
  EXPECT_NEAR(projected_share(1e-5, 512), 0.0051, 1e-4);
  EXPECT_NEAR(projected_share(1e-5, 8192), 0.0787, 1e-4);
  EXPECT_DOUBLE_EQ(projected_share(0.02, 1), 0.02);
}

TEST(PackageEnergy, is_the_rise_of_all_counters_of_a_tree) {
  const FakeTree tree;
  for (const char* package : {"0", "1"}) {
    const std::string zone = std::string("sys/class/powercap/intel-rapl:") + package;
    tree.file(zone + "/name", std::string("package-") + package + "\n");
    tree.file(zone + "/energy_uj", "1000000\n");
    tree.file(zone + "/max_energy_range_uj", "262143328850\n");
  }
  const auto before = package_energies(tree.path()).value();
  tree.file("sys/class/powercap/intel-rapl:0/energy_uj", "51000000\n");
  tree.file("sys/class/powercap/intel-rapl:1/energy_uj", "31000000\n");
  EXPECT_DOUBLE_EQ(energy_between_j(before, package_energies(tree.path()).value(), 1).value(), 80);
  EXPECT_FALSE(package_energies(tree.path("nowhere")));
}
TEST(PackageEnergy, of_a_counter_that_stands_still_or_runs_back_is_absent_and_not_0) {
  const PackageEnergies before = {{"package-0", {.energy_uj = 5'000'000, .range_uj = 262'143'328'850}}};
  const auto after = [&](std::uint64_t energy_uj) {
    return energy_between_j(before, {{"package-0", {.energy_uj = energy_uj, .range_uj = 262'143'328'850}}}, 1);
  };
  EXPECT_FALSE(after(5'000'000));
  EXPECT_FALSE(after(4'000'000));
  EXPECT_TRUE(after(9'000'000));
  EXPECT_FALSE(energy_between_j(before, {}, 1));
  const PackageEnergies high = {{"package-0", {.energy_uj = 262'143'000'000, .range_uj = 262'143'328'850}}};
  EXPECT_NEAR(energy_between_j(high, before, 1).value(), 5.33, 0.01);  // it wrapped
}

TEST(GroupKinds, are_those_of_several_ranks) {
  EXPECT_EQ(group_kinds({.tp = 2, .pp = 2, .dp = 2}), (std::vector<std::size_t>{0, 3, 4}));
  EXPECT_TRUE(group_kinds({}).empty());
}
TEST(EvenPasses, take_as_long_as_those_of_the_slowest) {
  EXPECT_EQ(even_passes({0.1, 0, 0, 0.025, 0}, 4), (std::vector<std::int64_t>{4, 0, 0, 16, 0}));
}

TEST(PredictedStep, adds_up_operations_waits_of_the_pipeline_and_what_is_not_hidden) {
  const ParallelPlan plan{.layers = 4, .seq = 16, .micro_batches = 2, .pp = 2};
  RankSteps compute;
  compute.alone[{Role::attention_norm, Pass::forward}] = 1;
  compute.alone[{Role::attention_norm, Pass::input}] = 2;
  // Two layers on each rank: 2 s forward, 4 s backward; (m + p - 1) of both is 18 s.
  EXPECT_DOUBLE_EQ(predicted_step(kSmallDense, plan, {compute, compute}, {{}, {}}, true), 18);
  RankSteps messages;
  messages.alone[{Role::boundary, Pass::forward}] = messages.alone[{Role::boundary, Pass::input}] = 0.5;
  EXPECT_GT(predicted_step(kSmallDense, plan, {compute, compute}, {messages, messages}, true), 18);
  const ParallelPlan replicas{.layers = 4, .seq = 16, .dp = 2};
  RankSteps reduction;
  reduction.alone[{Role::gradients, Pass::weight}] = 1;
  const auto step = [&](bool beside) {
    return predicted_step(kSmallDense, replicas, {compute, compute}, {reduction, reduction}, beside);
  };
  EXPECT_DOUBLE_EQ(step(false), 12 + 6);  // head, four layers and embedding, one after the other
  EXPECT_DOUBLE_EQ(step(true), 12 + 2);   // the last layer's and the embedding's have nothing to hide behind
}

TEST(Longest, of_ranks_that_made_different_numbers_of_steps_is_refused) {
  EXPECT_EQ(longest({rank_of(1, 0), rank_of(2, 0)}, &RankSteps::wall), std::vector<double>(4, 2.0));
  EXPECT_THROW((void)longest({rank_of(1, 0), rank_of(2, 0, 3)}, &RankSteps::wall), std::runtime_error);
}

TEST(Votes, name_the_one_of_three_that_differs_and_nobody_of_two) {
  const Blame three = votes_of({.layers = 2, .dp = 3}, {{7}, {8}, {7}}, Ballot::weights);
  EXPECT_EQ(three.ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(three.mismatches, 1U);
  EXPECT_EQ(three.words.at(0), "rank 1 has other gradients than 2 of its 3 replicas");
  const Blame two = votes_of({.layers = 2, .dp = 2}, {{7}, {8}}, Ballot::weights);
  EXPECT_TRUE(two.ranks.empty());
  EXPECT_EQ(two.mismatches, 1U);
  EXPECT_EQ(two.words.at(0), "replicas 0, 1 differ, and no majority says which is wrong");
  EXPECT_EQ(votes_of({.layers = 2, .tp = 2, .dp = 2}, {{7}, {8}, {7}, {8}}, Ballot::weights).mismatches, 0U);
}

TEST(AgainstOneRank, sums_of_a_replica_count) {
  const ParallelPlan plan{.layers = 2, .tp = 2, .dp = 2};
  EXPECT_EQ(against_one_rank(plan, {{3}, {4}, {5}, {2}}, {7}).mismatches, 0U);
  const Blame blame = against_one_rank(plan, {{3}, {4}, {5}, {3}}, {7});
  EXPECT_EQ(blame.mismatches, 1U);
  EXPECT_EQ(blame.words.at(0), "replica 1 has other weights than one rank alone");
}

TEST(RankStart, arrives_as_it_was_sent) {
  const RankStart start{
      .job =
          {.model = kTinyDense,
           .plan = {.layers = 2, .seq = 64, .micro_batch = 3, .micro_batches = 4, .tp = 2, .pp = 2, .dp = 3, .zero = 1},
           .rank = 5,
           .data = DataMode::replicated,
           .beside = false,
           .graph = true,
           .attention = AttentionKind::fused_unordered},
      .address = "10.0.0.1",
      .board = BoardPlace{.descriptor = 9, .ranks = 4, .own = 3, .period_s = 0.5, .folder = "/f"}};
  const auto read = rank_start(rank_arguments("train_step_rank", start));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->job.model, start.job.model);
  EXPECT_EQ(read->job.plan.world(), 12);
  EXPECT_EQ(read->job.plan.micro_batches, 4);
  EXPECT_EQ(read->job.plan.zero, 1);
  EXPECT_EQ(read->job.rank, 5);
  EXPECT_EQ(read->job.data, DataMode::replicated);
  EXPECT_FALSE(read->job.beside);
  EXPECT_TRUE(read->job.graph);
  EXPECT_EQ(read->job.attention, AttentionKind::fused_unordered);
  EXPECT_EQ(read->address, "10.0.0.1");
  ASSERT_TRUE(read->board.has_value());
  EXPECT_EQ(read->board->own, 3U);
  EXPECT_EQ(read->board->period_s, 0.5);
  EXPECT_EQ(read->board->folder, "/f");
  EXPECT_FALSE(rank_start({"train_step_rank", "1", "{}"}).has_value());
  EXPECT_FALSE(rank_start({"train_step_rank"}).has_value());
}

}  // namespace
}  // namespace assay::train
