// The engine on hosts: exact arithmetic gives the same bits however the step is divided, a turned bit shows, and a step
// allocates nothing.
#include <atomic>
#include <cstdlib>
#include <new>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "tests/unit/train/ranks.h"
#include "workloads/train/step/step_evidence.h"

namespace {
std::atomic<std::size_t> allocations = 0;
}
// Counted for the claim that a step allocates nothing.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace assay::train {
namespace {

constexpr std::uint64_t kSteps = 3;
constexpr std::int64_t kExpertWeights = 4 * 3 * 48 * 24;  // of kExperts and ep 2, in one layer

RankJob exact_job(ParallelPlan plan, const ModelShape& model = kDivisible) {
  plan.seq = 16;
  return {.model = model, .plan = plan, .data = DataMode::ring};
}

/// Prints of the weights of every rank after each of three steps: [step][rank].
std::vector<std::vector<RankPrint>> prints_of(const RankJob& job) {
  std::vector<std::vector<RankPrint>> all(kSteps, std::vector<RankPrint>(sized(job.plan.world())));
  on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      (void)engine.step(Variant::full, step);
      all[step][rank] = engine.print(false);
    }
  });
  return all;
}

std::vector<RankPrint> of_one_rank(const RankJob& job) {
  RankJob alone = job;
  alone.plan = undivided(job.plan);
  std::vector<RankPrint> steps;
  for (const auto& step : prints_of(alone)) steps.push_back(step.front());
  return steps;
}

/// Two micro-batches on each replica, with gradients reduced beside the backward pass and after it.
void expect_as_one_rank(const ParallelPlan& plan, const ModelShape& model = kDivisible) {
  for (const bool beside : {false, true}) {
    RankJob job = exact_job(plan, model);
    if (plan.micro_batches == 1) job.plan.micro_batches = 2;
    job.beside = beside;
    const auto found = prints_of(job);
    const auto expected = of_one_rank(job);
    for (std::size_t step = 0; step < kSteps; ++step)
      EXPECT_EQ(against_one_rank(job.plan, found[step], expected[step]).words, std::vector<std::string>());
    if (plan.replicas() == 1) break;  // nothing runs beside
  }
}

TEST(ExactStep, divided_by_tp2_equals_one_rank) { expect_as_one_rank({.layers = 2, .tp = 2}); }
TEST(ExactStep, divided_by_tp3_equals_one_rank) { expect_as_one_rank({.layers = 2, .tp = 3}); }
TEST(ExactStep, divided_by_tp4_equals_one_rank) { expect_as_one_rank({.layers = 2, .tp = 4}); }
TEST(ExactStep, divided_by_pp2_equals_one_rank) { expect_as_one_rank({.layers = 2, .pp = 2}); }
TEST(ExactStep, divided_by_pp4_equals_one_rank) { expect_as_one_rank({.layers = 4, .pp = 4}); }
TEST(ExactStep, divided_by_dp4_equals_one_rank) { expect_as_one_rank({.layers = 2, .dp = 4}); }
TEST(ExactStep, divided_by_dp3_with_sharded_optimizer_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .dp = 3, .zero = 1});
}
TEST(ExactStep, divided_by_tp2_and_pp2_equals_one_rank) { expect_as_one_rank({.layers = 2, .tp = 2, .pp = 2}); }
TEST(ExactStep, divided_by_tp2_pp2_and_dp2_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .tp = 2, .pp = 2, .dp = 2, .zero = 1});
}

// A sequence is divided into twice as many pieces as there are ranks.
TEST(ExactStep, divided_by_cp2_equals_one_rank) { expect_as_one_rank({.layers = 2, .cp = 2}); }
TEST(ExactStep, divided_by_cp4_of_several_sequences_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .micro_batch = 3, .cp = 4});
}
TEST(ExactStep, divided_by_cp2_with_heads_that_share_keys_equals_one_rank) {
  ModelShape shared = kDivisible;
  shared.kv_heads = 4;
  expect_as_one_rank({.layers = 2, .tp = 2, .cp = 2, .dp = 2, .zero = 1}, shared);
}
TEST(ExactStep, divided_by_cp2_and_pp2_equals_one_rank) { expect_as_one_rank({.layers = 2, .cp = 2, .pp = 2}); }

TEST(ExactStep, divided_into_interleaved_stages_equals_one_rank) {
  expect_as_one_rank({.layers = 4, .micro_batches = 4, .pp = 2, .virtual_stages = 2});
}
TEST(ExactStep, divided_into_interleaved_stages_of_replicas_equals_one_rank) {
  expect_as_one_rank({.layers = 4, .micro_batches = 2, .tp = 2, .pp = 2, .dp = 2, .virtual_stages = 2, .zero = 1});
}

TEST(ExactStep, of_experts_divided_by_tp2_equals_one_rank) { expect_as_one_rank({.layers = 2, .tp = 2}, kExperts); }
TEST(ExactStep, of_experts_divided_by_ep2_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .ep = 2, .dp = 2}, kExperts);
}
TEST(ExactStep, of_experts_divided_by_ep4_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .micro_batch = 2, .ep = 4, .dp = 4, .zero = 1}, kExperts);
}
TEST(ExactStep, of_experts_with_fewer_replicas_than_the_rest_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .ep = 2, .dp = 4, .zero = 1}, kExperts);
}
TEST(ExactStep, of_experts_divided_by_cp2_and_ep2_equals_one_rank) {
  expect_as_one_rank({.layers = 2, .tp = 2, .cp = 2, .ep = 2, .dp = 1}, kExperts);
}
TEST(ExactStep, of_experts_divided_by_everything_equals_one_rank) {
  expect_as_one_rank({.layers = 4, .tp = 2, .cp = 2, .ep = 4, .pp = 2, .dp = 2, .virtual_stages = 2, .zero = 1},
                     kExperts);
}
TEST(ExactStep, of_experts_without_shared_ones_and_after_a_dense_layer_equals_one_rank) {
  ModelShape model = kExperts;
  model.moe->shared = 0;
  model.moe->first_dense = 1;
  expect_as_one_rank({.layers = 2, .ep = 2, .dp = 2}, model);
  expect_as_one_rank({.layers = 2, .tp = 2}, model);
}

TEST(ExactStep, of_experts_differs_where_one_weight_of_one_expert_does) {
  const RankJob job = exact_job({.layers = 2, .ep = 2, .dp = 2}, kExperts);
  std::vector<RankPrint> prints(2);
  on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
    const auto update = std::ranges::find_if(
        engine.ops(), [&](const Op& op) { return op.kind == OpKind::optimizer && op.m == kExpertWeights; });
    ASSERT_NE(update, engine.ops().end());
    if (rank == 1) engine.flip_weight(7, 30, update->bucket);  // of an exponent: a zero changes, too
    (void)engine.step(Variant::full, 0);
    prints[rank] = engine.print(false);
  });
  EXPECT_EQ(against_one_rank(job.plan, prints, of_one_rank(job).front()).mismatches, 2U);
}

TEST(ExactStep, has_weights_that_move_in_every_step) {
  for (const ModelShape& model : {kDivisible, kExperts}) {
    std::set<std::uint64_t> shared, experts;
    for (const RankPrint& print : of_one_rank(exact_job({.layers = 2, .micro_batches = 2}, model))) {
      shared.insert(print.shared);
      experts.insert(print.experts);
    }
    EXPECT_EQ(shared.size(), kSteps);
    EXPECT_EQ(experts.size(), model.moe ? kSteps : 1);
  }
}

std::size_t first_op(Role role, Pass pass) {
  const auto ops = step_graph(kDivisible, exact_job({.layers = 2, .micro_batches = 2}).plan, 0);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].role == role && ops[i].pass == pass) return i;
  }
  throw std::logic_error("no such operation");
}

TEST(TracedStep, is_the_same_twice_and_differs_from_a_turned_bit_on) {
  HostEngine same(exact_job({.layers = 2, .micro_batches = 2}));
  EXPECT_EQ(same.traced(0, std::nullopt), same.traced(0, std::nullopt));
  for (const auto& [role, pass] :
       {std::pair{Role::gate_up, Pass::forward}, {Role::qkv, Pass::input}, {Role::down, Pass::weight}}) {
    const std::size_t op = first_op(role, pass);
    HostEngine engine(exact_job({.layers = 2, .micro_batches = 2}));
    const auto clean = engine.traced(0, std::nullopt),
               turned = engine.traced(0, Flip{.op = op, .element = 5, .bit = 22});
    const auto first = std::ranges::mismatch(clean, turned).in1 - clean.begin();
    EXPECT_EQ(static_cast<std::size_t>(first), op);
  }
}

TEST(ReplicatedStep, has_equal_gradients_on_all_replicas_but_one_with_a_turned_bit) {
  RankJob job{.model = kDivisible, .plan = {.layers = 2, .seq = 16, .dp = 3}, .data = DataMode::replicated};
  std::vector<RankPrint> prints(3);
  on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
    const auto flip = rank == 1 ? std::optional(Flip{.op = 7, .element = 11, .bit = 3}) : std::nullopt;
    prints[rank] = engine.own_gradients(0, flip);
  });
  EXPECT_EQ(prints[0], prints[2]);
  EXPECT_NE(prints[0].shared, prints[1].shared);
}

// Ranks with the same tokens vote on the gradients of what they share: both experts and everything else.
TEST(ReplicatedStep, of_experts_and_divided_sequences_has_gradients_that_agree_but_one_with_a_turned_bit) {
  const RankJob job{
      .model = kExperts, .plan = {.layers = 2, .seq = 16, .cp = 2, .ep = 2, .dp = 3}, .data = DataMode::replicated};
  for (const bool turned : {false, true}) {
    std::vector<RankPrint> prints(6);
    on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
      const auto product = std::ranges::find_if(
          engine.ops(), [](const Op& op) { return op.role == Role::down && op.pass == Pass::weight; });
      const Flip flip{.op = static_cast<std::size_t>(product - engine.ops().begin()), .element = 5, .bit = 22};
      prints[rank] = engine.own_gradients(0, turned && rank == 3 ? std::optional(flip) : std::nullopt);
    });
    const Blame blame = votes_of(job.plan, prints, Ballot::gradients);
    EXPECT_EQ(blame.ranks, turned ? std::vector<std::int64_t>{3} : std::vector<std::int64_t>{});
    EXPECT_EQ(blame.mismatches, turned ? 1U : 0U);
  }
}

TEST(GaussianStep, stays_finite_over_steps_of_all_variants) {
  RankJob job{.model = kDivisible, .plan = {.layers = 2, .seq = 16, .micro_batches = 2, .tp = 2, .dp = 2, .zero = 1}};
  std::atomic<std::uint64_t> wrong = 0;
  on_all_ranks(job, [&](std::size_t, HostEngine& engine) {
    for (std::uint64_t step = 0; step < 30; ++step) (void)engine.step(Variant::full, step);
    wrong += engine.not_finite();
    for (std::uint64_t step = 0; step < 20; ++step) {
      (void)engine.step(Variant::comm_only, step);
      (void)engine.step(Variant::compute_only, step);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(GaussianStep, of_experts_and_divided_sequences_stays_finite_over_steps_of_all_variants) {
  const RankJob job{
      .model = kExperts,
      .plan = {.layers = 2, .seq = 16, .micro_batches = 2, .tp = 2, .cp = 2, .ep = 2, .dp = 1, .zero = 1}};
  std::atomic<std::uint64_t> wrong = 0;
  on_all_ranks(job, [&](std::size_t, HostEngine& engine) {
    for (std::uint64_t step = 0; step < 10; ++step) {
      for (const Variant variant : {Variant::full, Variant::compute_only, Variant::comm_only})
        (void)engine.step(variant, step);
    }
    (void)engine.step(Variant::full, 10);
    wrong += engine.not_finite();
  });
  EXPECT_EQ(wrong, 0);
}

// What divides a step changes the order of its sums, and no more: gradients agree to rounding.
TEST(GaussianStep, divided_has_the_gradients_of_one_rank_to_rounding) {
  const auto norm_of = [](const RankJob& job) {
    double squares = 0;
    on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
      (void)engine.traced(0, std::nullopt);
      engine.update();
      if (rank == 0) squares = engine.gradient_square();
    });
    return squares;
  };
  for (const ModelShape& model : {kDivisible, kExperts}) {
    RankJob job{.model = model, .plan = {.layers = 2, .seq = 16, .cp = 2, .dp = 2}};
    const double divided = norm_of(job);
    job.plan = undivided(job.plan);
    EXPECT_NEAR(norm_of(job) / divided, 1, 1e-4);
  }
}

TEST(GaussianStep, leaves_equal_weights_on_replicas_whatever_else_is_run_between) {
  RankJob job{.model = kDivisible, .plan = {.layers = 2, .seq = 16, .dp = 2}};
  std::vector<RankPrint> prints(2);
  on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
    for (const Variant variant : {Variant::full, Variant::compute_only, Variant::comm_only, Variant::full})
      (void)engine.step(variant, 0);
    prints[rank] = engine.print(false);
  });
  EXPECT_EQ(prints[0], prints[1]);
}

// The gradients of rank 1 come late: rank 0 waits where it updates, and that is time in collectives.
TEST(GaussianStep, counts_waits_for_what_runs_beside_as_time_in_collectives) {
  HostEngine engine({.model = kDivisible, .plan = {.layers = 2, .seq = 16, .dp = 2}});
  constexpr std::chrono::milliseconds kLate(100);
  engine.connect([&](std::size_t op) {
    if (engine.ops()[op].layer == 0) std::this_thread::sleep_for(kLate);  // the last layer to be reduced but one
  });
  const StepTimes times = engine.step(Variant::full, 0);
  EXPECT_GE(times.collective_s, std::chrono::duration<double>(kLate).count() / 2);
}

TEST(GaussianStep, allocates_nothing) {
  HostEngine engine({.model = kExperts, .plan = {.layers = 4, .seq = 16, .micro_batches = 2}});
  (void)engine.step(Variant::full, 0);
  const std::size_t before = allocations;
  (void)engine.step(Variant::full, 1);
  EXPECT_EQ(allocations, before);
}

TEST(GaussianStep, of_compute_only_on_one_rank_runs_all_that_a_full_one_runs) {
  HostEngine engine({.model = kDivisible, .plan = {.layers = 4, .seq = 16}});
  const auto count = [&](Variant variant) {
    (void)engine.step(variant, 0);
    return std::ranges::count_if(engine.spans(), [](const auto& span) { return span.end_s > 0; });
  };
  EXPECT_EQ(count(Variant::compute_only), count(Variant::full));
  EXPECT_EQ(count(Variant::comm_only), 0);
}

std::string engine_refusal(const ModelShape& model, const ParallelPlan& plan) {
  try {
    check_engine(model, plan);
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(HostEngine, refuses_what_only_the_graph_covers) {
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2}), "");
  EXPECT_EQ(engine_refusal(kTinyMoe, {.layers = 2, .cp = 2, .ep = 4, .dp = 2}), "");
  EXPECT_EQ(engine_refusal(kDeepseekV3, {.layers = 1}),
            "model: latent attention is not run by this engine; give a model with attention gqa");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .seq = 126, .cp = 2}),
            "cp: 2 x 2 pieces do not divide 126 tokens of a sequence; the nearest that does: 1");
  EXPECT_EQ(engine_refusal(kTinyMoe, {.layers = 2, .seq = 24, .cp = 3, .ep = 2, .dp = 2}),
            "ep: a group that has a part of some sequences is not run by this engine; give an ep that divides cp or "
            "that cp divides");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .zero = 2}),
            "zero: sharded gradients and weights are not run by this engine; give zero 0 or 1");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .element = 2}),
            "type: other types than fp32 are not run by this engine; give type fp32");
}

}  // namespace
}  // namespace assay::train
