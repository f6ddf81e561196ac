// The engine for GPUs on a fake device and fake collectives: the same graph by the same executor, and in exact
// arithmetic the same bits as one rank of the engine on hosts. Nothing here says anything about a GPU.
#include <thread>

#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "tests/unit/train/ranks.h"
#include "tests/unit/train/recorded_calls.h"
#include "tests/unit/train_gpu/fake_device.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::train_gpu {
namespace {

constexpr std::uint64_t kSteps = 2;
constexpr std::size_t kBlock = 6;  // queries done together: pieces of 4 to 16 have whole blocks and a rest

train::RankJob exact_job(train::ParallelPlan plan, const train::ModelShape& model = train::kDivisible) {
  plan.seq = 16;
  plan.micro_batches = std::max<std::int64_t>(2, plan.micro_batches);
  return {.model = model, .plan = plan, .data = train::DataMode::ring};
}

/// Weights of all ranks after each step, of which `parts` are walked; each rank is a thread with a fake device.
std::vector<std::vector<train::RankPrint>> on_fake_devices(const train::RankJob& job,
                                                           const std::vector<train::Part>& parts) {
  std::vector<std::vector<train::RankPrint>> prints(kSteps,
                                                    std::vector<train::RankPrint>(train::sized(job.plan.world())));
  std::vector<std::exception_ptr> failures(train::sized(job.plan.world()));
  FakeNetwork network;
  const auto live = [&](std::int64_t rank) {
    train::RankJob mine = job;
    mine.rank = rank;
    FakeDevice device;
    device.bf16 = job.factors == train::FactorType::bf16;
    DeviceCore core(mine, kBlock, device);
    FakeCollectives collectives(network, job.plan, rank);
    DeviceLine<FakeCollectives> line(mine, core, collectives);
    train::Executor executor(core.ops(), job.beside, core, line);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      for (const train::Part part : parts) {
        core.start(step, part);
        (void)executor.walk(
            part, [](std::size_t) {}, [](std::size_t) {});  // fake times
      }
      prints[step][train::sized(rank)] = core.print(false);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < job.plan.world(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          live(rank);
        } catch (...) {  // thrown on below
          failures[train::sized(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return prints;
}

void expect_as_one_rank_of_a_host(const train::RankJob& job,
                                  const std::vector<train::Part>& parts = {train::Part::full}) {
  train::RankJob alone = job;
  alone.plan = train::undivided(job.plan);
  train::HostEngine host(alone);
  const auto found = on_fake_devices(job, parts);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    (void)host.step(train::Variant::full, step);
    EXPECT_EQ(train::against_one_rank(job.plan, found[step], host.print(false)).words, std::vector<std::string>());
  }
}

TEST(DeviceEngine, on_one_fake_device_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .micro_batch = 2}));
}
TEST(DeviceEngine, divided_by_tp2_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .tp = 2}));
}
TEST(DeviceEngine, divided_by_cp2_with_heads_that_share_keys_equals_the_engine_on_hosts) {
  train::ModelShape shared = train::kDivisible;
  shared.kv_heads = 4;
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .micro_batch = 2, .cp = 2}, shared));
}
TEST(DeviceEngine, divided_by_pp2_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .pp = 2}));
}
TEST(DeviceEngine, divided_by_dp3_with_sharded_optimizer_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .dp = 3, .zero = 1}));
}
TEST(DeviceEngine, divided_by_everything_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(
      exact_job({.layers = 4, .tp = 2, .cp = 2, .pp = 2, .dp = 2, .virtual_stages = 2, .zero = 1}));
}

TEST(DeviceEngine, with_experts_on_one_fake_device_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .micro_batch = 2}, train::kExperts));
}
TEST(DeviceEngine, with_experts_alone_equals_the_engine_on_hosts) {
  train::ModelShape alone = train::kExperts;
  alone.moe->shared = 0;
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .tp = 2}, alone));
}
TEST(DeviceEngine, with_experts_divided_by_tp2_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .tp = 2}, train::kExperts));
}
TEST(DeviceEngine, with_experts_divided_by_ep4_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .ep = 4, .dp = 4}, train::kExperts));
}
TEST(DeviceEngine, with_experts_that_have_replicas_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .ep = 2, .dp = 4, .zero = 1}, train::kExperts));
}
TEST(DeviceEngine, with_experts_divided_by_everything_and_packed_factors_equals_the_engine_on_hosts) {
  train::RankJob job =
      exact_job({.layers = 4, .tp = 2, .cp = 2, .ep = 2, .pp = 2, .virtual_stages = 2, .zero = 1}, train::kExperts);
  job.factors = train::FactorType::bf16;
  expect_as_one_rank_of_a_host(job);
}

// In exact arithmetic every factor is a BF16 number, wherever it is packed.
TEST(DeviceEngine, with_packed_factors_equals_the_engine_on_hosts) {
  train::ModelShape shared = train::kDivisible;
  shared.kv_heads = 4;
  train::RankJob job =
      exact_job({.layers = 4, .tp = 2, .cp = 2, .pp = 2, .dp = 2, .virtual_stages = 2, .zero = 1}, shared);
  job.factors = train::FactorType::bf16;
  expect_as_one_rank_of_a_host(job);
}

TEST(PackedFactors, begin_every_row_at_a_whole_group_of_eight) {
  const FactorShape heads{.rows = 3, .columns = 12, .leading = 64, .batch = 2, .stride = 20};
  EXPECT_EQ(packed(heads), (FactorShape{.rows = 3, .columns = 12, .leading = 16, .batch = 2, .stride = 48}));
  EXPECT_EQ(packed(heads).extent(), 96);
  const ProductShape one{.m = 5, .n = 12, .k = 7, .lda = 9, .ldb = 7, .ldc = 12, .b_turned = true};
  EXPECT_EQ(packed(one), (ProductShape{.m = 5, .n = 12, .k = 7, .lda = 8, .ldb = 8, .ldc = 12, .b_turned = true}));
}

// As exact steps are checked: gradients twice from the same weights, then the update.
TEST(DeviceEngine, with_gradients_twice_and_then_the_update_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .tp = 2, .dp = 2, .zero = 1}),
                               {train::Part::gradients, train::Part::gradients, train::Part::update});
}

// Steps without communication, or without computation, leave the weights as they are.
TEST(DeviceEngine, between_steps_of_computation_alone_equals_the_engine_on_hosts) {
  expect_as_one_rank_of_a_host(exact_job({.layers = 2, .dp = 2}), {train::Part::computation, train::Part::full});
}

// The order of calls is the executor's, whatever is behind it.
TEST(DeviceEngine, gets_the_calls_that_the_engine_on_hosts_gets) {
  const train::RankJob job = exact_job({.layers = 2, .tp = 2, .cp = 2, .pp = 2, .dp = 2, .zero = 1});
  FakeDevice device;
  DeviceCore core(job, kBlock, device);
  train::HostEngine host(job);
  ASSERT_EQ(core.ops().size(), host.ops().size());
  for (const train::Part part : {train::Part::full, train::Part::computation, train::Part::communication,
                                 train::Part::gradients, train::Part::update})
    EXPECT_EQ(train::recorded(core.ops(), true, part), train::recorded(host.ops(), true, part));
}

TEST(DeviceEngine, asks_in_a_step_for_no_product_that_was_not_rehearsed) {
  FakeDevice device;
  const train::RankJob job = exact_job({.layers = 2});
  DeviceCore core(job, kBlock, device);
  core.rehearse();
  const std::set<ProductShape> rehearsed(device.shapes.begin(), device.shapes.end());
  device.shapes.clear();
  FakeNetwork network;
  FakeCollectives collectives(network, job.plan, 0);
  DeviceLine<FakeCollectives> line(job, core, collectives);
  train::Executor executor(core.ops(), true, core, line);
  core.start(0, train::Part::full);
  (void)executor.walk(
      train::Part::full, [](std::size_t) {}, [](std::size_t) {});  // fake times
  ASSERT_FALSE(device.shapes.empty());
  for (const ProductShape& shape : device.shapes) EXPECT_TRUE(rehearsed.contains(shape));
}

std::string refusal(const train::ModelShape& model, const train::ParallelPlan& plan) {
  try {
    check_device_engine(model, plan);
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceEngine, refuses_widths_and_buckets_that_do_not_divide) {
  train::ModelShape narrow = train::kExperts;
  narrow.moe->ffn = 10;
  EXPECT_EQ(refusal(narrow, {.layers = 2}),
            "moe.ffn / tp: 10 is no multiple of 4, which the engine on GPUs needs; the nearest that is: 12");
  EXPECT_EQ(refusal(train::kTinyDense, {.layers = 2, .seq = 128, .dp = 2, .zero = 1}), "");
  EXPECT_EQ(refusal(train::kTinyDense, {.layers = 2, .seq = 130}),
            "seq / (2 cp): 130 is no multiple of 4, which the engine on GPUs needs; the nearest that is: 132");
  EXPECT_EQ(refusal(train::kTinyDense, {.layers = 2, .seq = 128, .dp = 3, .zero = 1}),
            "zero: 262400 weights of one bucket do not divide among 3 "
            "replicas; the nearest number that does: 2");
}

}  // namespace
}  // namespace assay::train_gpu
