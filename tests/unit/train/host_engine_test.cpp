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

RankJob exact_job(ParallelPlan plan) {
  plan.seq = 16;
  return {.model = kDivisible, .plan = plan, .data = DataMode::ring};
}

/// Prints of the weights after each of three steps: of one replica, and whether all replicas have it.
struct Prints {
  std::vector<std::uint64_t> steps = std::vector<std::uint64_t>(kSteps, 0);
  bool replicas_agree = true;
};

Prints prints_of(const RankJob& job) {
  std::vector<std::vector<std::uint64_t>> by_rank(static_cast<std::size_t>(job.plan.world()));
  on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      (void)engine.step(Variant::full, step);
      by_rank[rank].push_back(engine.print(false));
    }
  });
  Prints all;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    std::vector<std::uint64_t> replicas(static_cast<std::size_t>(job.plan.dp), 0);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
      replicas[static_cast<std::size_t>(position_of(job.plan, static_cast<std::int64_t>(rank)).dp)] +=
          by_rank[rank][step];
    all.steps[step] = replicas[0];
    all.replicas_agree = all.replicas_agree && std::set(replicas.begin(), replicas.end()).size() == 1;
  }
  return all;
}

/// One rank does all `micro_batches` of the step.
std::vector<std::uint64_t> of_one_rank(std::int64_t layers, std::int64_t micro_batches) {
  return prints_of(exact_job({.layers = layers, .micro_batches = micro_batches})).steps;
}

/// Two micro-batches on each replica, with gradients reduced beside the backward pass and after it.
void expect_as_one_rank(const ParallelPlan& plan) {
  for (const bool beside : {false, true}) {
    RankJob job = exact_job(plan);
    job.plan.micro_batches = 2;
    job.beside = beside;
    const Prints found = prints_of(job);
    EXPECT_EQ(found.steps, of_one_rank(plan.layers, 2 * plan.dp));
    EXPECT_TRUE(found.replicas_agree);
    if (plan.dp == 1) break;  // nothing runs beside
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

TEST(ExactStep, has_weights_that_move_in_every_step) {
  const auto steps = of_one_rank(2, 2);
  EXPECT_EQ(std::set(steps.begin(), steps.end()).size(), kSteps);
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
  std::vector<std::uint64_t> prints(3);
  on_all_ranks(job, [&](std::size_t rank, HostEngine& engine) {
    const auto flip = rank == 1 ? std::optional(Flip{.op = 7, .element = 11, .bit = 3}) : std::nullopt;
    prints[rank] = engine.own_gradients(0, flip);
  });
  EXPECT_EQ(prints[0], prints[2]);
  EXPECT_NE(prints[0], prints[1]);
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

TEST(GaussianStep, leaves_equal_weights_on_replicas_whatever_else_is_run_between) {
  RankJob job{.model = kDivisible, .plan = {.layers = 2, .seq = 16, .dp = 2}};
  std::vector<std::uint64_t> prints(2);
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
  HostEngine engine({.model = kDivisible, .plan = {.layers = 4, .seq = 16, .micro_batches = 2}});
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
  EXPECT_EQ(engine_refusal(kTinyMoe, {.layers = 2}), "model: experts are not run by this engine; give a dense model");
  EXPECT_EQ(engine_refusal(kDeepseekV3, {.layers = 1}),
            "model: latent attention is not run by this engine; give a model with attention gqa");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .cp = 2}),
            "cp: a divided sequence is not run by this engine; give cp 1");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .virtual_stages = 2}),
            "virtual: interleaved stages are not run by this engine; give virtual 1");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .zero = 2}),
            "zero: sharded gradients and weights are not run by this engine; give zero 0 or 1");
  EXPECT_EQ(engine_refusal(kTinyDense, {.layers = 2, .element = 2}),
            "type: other types than fp32 are not run by this engine; give type fp32");
}

}  // namespace
}  // namespace assay::train
