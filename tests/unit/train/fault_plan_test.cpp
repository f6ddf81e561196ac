// Faults have their places, and recovery its formulas.
#include <set>

#include <gtest/gtest.h>

#include "workloads/train/faults/fault_plan.h"

namespace assay::train {
namespace {

const ParallelPlan kTwoReplicas{.layers = 2, .seq = 16, .micro_batches = 2, .dp = 2};
constexpr ModelShape kSmall{
    .layers = 2, .hidden = 48, .ffn = 96, .heads = 12, .kv_heads = 12, .head_dim = 8, .vocab = 96};

TEST(FaultPlan, has_every_phase_of_every_kind_and_ranks_take_turns) {
  const FaultPlan plan = fault_plan("all", "all", 1, 3, 4);
  ASSERT_EQ(plan.cases.size(), 20U);
  EXPECT_EQ(plan.steps, 120);
  EXPECT_EQ(text_of(plan.cases[0]), "kill of rank 0 in forward of step 4");
  EXPECT_EQ(key_of(plan.cases[0]), "kill:forward");
  EXPECT_EQ(text_of(plan.cases[4]), "kill of rank 0 in save of step 30");
  EXPECT_EQ(text_of(plan.cases[6]), "hang of rank 2 in backward of step 40");
}

TEST(FaultPlan, strikes_after_a_save_so_that_a_step_is_lost) {
  for (const FaultCase& one : fault_plan("all", "all", 2, 2, 3).cases) {
    const std::int64_t into = one.step % 4;
    EXPECT_EQ(into, one.phase == StepPhase::save ? 0 : 3) << text_of(one);
  }
}

TEST(FaultPlan, takes_the_words_it_is_given) {
  const FaultPlan plan = fault_plan("cut", "reduce", 3, 3, 2);
  ASSERT_EQ(plan.cases.size(), 3U);
  EXPECT_EQ(text_of(plan.cases[2]), "cut of rank 0 in reduce of step 16");
}

TEST(FaultPlace, is_in_the_middle_of_its_phase) {
  const auto ops = step_graph(kSmall, kTwoReplicas, 1);
  const auto op = [&](StepPhase phase) { return ops.at(op_of(phase, ops).value()); };
  EXPECT_EQ(op(StepPhase::forward).pass, Pass::forward);
  EXPECT_EQ(op(StepPhase::forward).kind, OpKind::gemm);
  EXPECT_EQ(op(StepPhase::backward).pass, Pass::input);
  EXPECT_EQ(op(StepPhase::reduce).role, Role::gradients);
  EXPECT_EQ(op(StepPhase::optimizer).role, Role::adam);
  EXPECT_FALSE(op_of(StepPhase::save, ops));
}

TEST(FaultPlace, of_a_reduction_is_the_last_collective_where_there_are_no_replicas) {
  ParallelPlan plan = kTwoReplicas;
  plan.dp = 1;
  plan.tp = 2;
  const auto ops = step_graph(kSmall, plan, 0);
  const std::size_t at = op_of(StepPhase::reduce, ops).value();
  EXPECT_EQ(ops[at].group, Group::tp);
  for (std::size_t i = at + 1; i < ops.size(); ++i) EXPECT_NE(ops[i].kind, OpKind::collective);
}

TEST(Recovery, adds_up_and_its_restart_leaves_the_recomputing_out) {
  const Recovery one{.detect_s = 1, .abort_s = 2, .rebuild_s = 4, .restore_s = 8, .recompute_s = 16};
  EXPECT_EQ(one.repair_s(), 31);
  EXPECT_EQ(one.restart_s(), 15);
}

/// 419 interruptions in 54 days of 16,384 GPUs (Llama 3): one in 50,677 GPU-hours; saves that block for 5 s.
TEST(EffectiveShare, has_the_values_that_follow_from_published_rates) {
  constexpr double kSave_s = 5, kBetween_gpu_s = 50'677.0 * 3600;
  const double large_s = kBetween_gpu_s / 16'384, middle_s = kBetween_gpu_s / 9'600;
  const auto share = [&](double restart_s, double mtbf_s) {
    return effective_share(kSave_s, best_interval_s(kSave_s, mtbf_s), restart_s, mtbf_s);
  };
  EXPECT_NEAR(share(223, large_s), 0.95, 1e-4);
  EXPECT_NEAR(share(0, large_s), 0.97, 1e-4);
  EXPECT_NEAR(share(134, middle_s), 0.97, 1e-4);
  EXPECT_EQ(share(1e9, large_s), 0);
}

}  // namespace
}  // namespace assay::train
