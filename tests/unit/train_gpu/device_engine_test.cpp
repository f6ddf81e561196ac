// The engine for GPUs on a fake device and fake collectives: the same graph by the same executor, and in exact
// arithmetic the same bits as one rank of the engine on hosts. Nothing here says anything about a GPU.
#include <cmath>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "tests/unit/train/ranks.h"
#include "tests/unit/train/recorded_calls.h"
#include "tests/unit/train_gpu/fake_network.h"
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

/// Calls `work` with the number, the core and the executor of every rank; each is a thread with a fake device that
/// keeps Number.
template <class Number, class Work>
void on_fake_devices(const train::RankJob& job, const Work& work) {
  std::vector<std::exception_ptr> failures(train::sized(job.plan.world()));
  FakeNetwork network;
  const auto live = [&](std::int64_t rank) {
    train::RankJob mine = job;
    mine.rank = rank;
    FakeDeviceOf<Number> device(mine, kBlock);
    DeviceCore core(mine, kBlock, device);
    EXPECT_EQ(device.taken(), rehearsed(mine, kBlock).memory);
    FakeCollectives collectives(network, job.plan, rank);
    DeviceLine<FakeCollectives, Number> line(mine, core, collectives);
    train::Executor executor(core.ops(), job.beside, core, line);
    work(train::sized(rank), core, [&](std::uint64_t step, train::Part part) {
      core.start(step, part);
      (void)executor.walk(
          part, [](std::size_t) {}, [](std::size_t) {});  // fake times
    });
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
}

/// Weights of all ranks after each exact step, of which `parts` are walked.
std::vector<std::vector<train::RankPrint>> exact_prints(const train::RankJob& job,
                                                        const std::vector<train::Part>& parts) {
  std::vector<std::vector<train::RankPrint>> prints(kSteps,
                                                    std::vector<train::RankPrint>(train::sized(job.plan.world())));
  on_fake_devices<float>(job, [&](std::size_t rank, auto& core, const auto& walk) {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      for (const train::Part part : parts) walk(step, part);
      const WeightPrint found = core.print(false);
      EXPECT_EQ(found.not_finite, 0U);
      prints[step][rank] = {.shared = found.shared, .experts = found.experts};
    }
  });
  return prints;
}

void expect_as_one_rank_of_a_host(const train::RankJob& job,
                                  const std::vector<train::Part>& parts = {train::Part::full}) {
  train::RankJob alone = job;
  alone.plan = train::undivided(job.plan);
  train::HostEngine host(alone);
  const auto found = exact_prints(job, parts);
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

// Whole numbers from -3 to 3 stay exact in both formats of FP8, times a power of two.
TEST(DeviceEngine, with_linear_layers_in_fp8_equals_the_engine_on_hosts) {
  train::RankJob job =
      exact_job({.layers = 4, .micro_batch = 2, .tp = 2, .cp = 2, .pp = 2, .dp = 2, .virtual_stages = 2, .zero = 1});
  job.factors = train::FactorType::fp8;
  expect_as_one_rank_of_a_host(job);
  expect_as_one_rank_of_a_host(job, {train::Part::gradients, train::Part::gradients, train::Part::update});
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
  FakeDevice device(job, kBlock);
  DeviceCore core(job, kBlock, device);
  train::HostEngine host(job);
  ASSERT_EQ(core.ops().size(), host.ops().size());
  for (const train::Part part : {train::Part::full, train::Part::computation, train::Part::communication,
                                 train::Part::gradients, train::Part::update})
    EXPECT_EQ(train::recorded(core.ops(), true, part), train::recorded(host.ops(), true, part));
}

/// What a step multiplies on a fake device.
template <class Number>
std::set<ProductShape> multiplied(const train::RankJob& job) {
  FakeDeviceOf<Number> device(job, kBlock);
  DeviceCore core(job, kBlock, device);
  FakeNetwork network;
  FakeCollectives collectives(network, job.plan, 0);
  DeviceLine<FakeCollectives, Number> line(job, core, collectives);
  train::Executor executor(core.ops(), true, core, line);
  core.start(0, train::Part::full);
  (void)executor.walk(
      train::Part::full, [](std::size_t) {}, [](std::size_t) {});  // fake times
  return {device.shapes.begin(), device.shapes.end()};
}

TEST(DeviceEngine, multiplies_in_a_step_what_the_rehearsal_did) {
  train::RankJob job = exact_job({.layers = 2}, train::kExperts);
  EXPECT_FALSE(multiplied<float>(job).empty());
  EXPECT_EQ(multiplied<float>(job), rehearsed(job, kBlock).shapes);
  job.factors = train::FactorType::bf16;
  EXPECT_EQ(multiplied<float>(job), rehearsed(job, kBlock).shapes) << "exact steps pack fp32 numbers";
  job.data = train::DataMode::gaussian;
  EXPECT_EQ(multiplied<train::Bf16>(job), rehearsed(job, kBlock).shapes) << "nothing is packed";
  job = exact_job({.layers = 2});
  job.factors = train::FactorType::fp8;
  EXPECT_EQ(multiplied<float>(job), rehearsed(job, kBlock).shapes) << "exact steps of fp8";
  job.data = train::DataMode::gaussian;
  EXPECT_EQ(multiplied<train::Bf16>(job), rehearsed(job, kBlock).shapes) << "steps of fp8";
}

// One layer of Llama 3 8B with 4096 tokens, counted by hand: B of what is kept in BF16 and in fp32.
TEST(DeviceMemory, is_known_to_the_byte) {
  train::RankJob job{
      .model = train::kLlama3_8b, .plan = {.layers = 1, .seq = 4096, .element = 2}, .factors = train::FactorType::bf16};
  const std::uint64_t weights = std::uint64_t{128256} * 4096 * 2 + 4096 * (4096 + 2 * 1024 + 4096) +
                                3 * std::uint64_t{4096} * 14336 + 3 * 4096,
                      t = 4096, h = 4096, q = 4096, kv = 1024, f = 14336, vocab = 128256, heads = 32;
  const std::uint64_t numbers = 5 * t * h                       // x, out, normed, middle, mlp_normed of the layer
                                + 4 * t * h                     // sum, two gradients, final_normed
                                + t * (q + 2 * kv) * 2          // qkv and its gradient
                                + heads * t * t + t * q * 2     // probabilities; attended and its gradient
                                + t * 3 * f * 2                 // gates, ups, active; and their gradients
                                + 64 * t + t * vocab            // room of one head, logits
                                + 8 * std::uint64_t{1024} * t;  // of scores of eight heads
  const std::uint64_t sums = 4 * t                              // inverse roots of three norms, sums of rows
                             + t / 32 * h;                      // parts of a gain's gradient
  const std::uint64_t bytes = weights * (2 + 4 + 4 + 8) + 2 * numbers + 4 * sums + 4 * 2 * t;
  EXPECT_EQ(rehearsed(job).bytes(), bytes);
  job.factors = train::FactorType::fp8;
  const std::uint64_t linear = h * (q + 2 * kv) + q * h + 3 * h * f, scales = 4 + 4 + 1;  // weights, inputs, a gradient
  EXPECT_EQ(rehearsed(job).bytes(), bytes + 2 * linear                                    // as they are, and transposed
                                        + t * (h + q + h + f)                             // inputs, transposed
                                        + t * f + 2 * t * 2 * f  // an input, a gradient twice: the largest
                                        + scales * 256);
}

TEST(DeviceMemory, of_exact_steps_counts_where_it_is_larger) {
  train::RankJob job = exact_job({.layers = 2});
  job.factors = train::FactorType::bf16;
  const std::uint64_t exact = rehearsed(job, kQueriesTogether).memory;
  job.data = train::DataMode::gaussian;
  const std::uint64_t own = rehearsed(job, kQueriesTogether).memory;
  EXPECT_EQ(rehearsed_both(job).memory, std::max(exact, own));
  EXPECT_GT(rehearsed_both(job).packed_a, 0U) << "exact steps pack";
}

std::string memory_refusal(const train::RankJob& job, std::uint64_t available) {
  try {
    check_device_memory(job, {available});
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceMemory, of_a_model_that_does_not_fit_is_refused_with_the_nearest_that_does) {
  train::RankJob job{.model = train::kDivisible, .plan = {.layers = 4, .seq = 64}, .factors = train::FactorType::bf16};
  const auto need = [&](std::int64_t layers, std::int64_t tp) {
    train::RankJob other = job;
    other.plan.layers = layers;
    other.plan.tp = tp;
    return rehearsed_both(other).bytes();
  };
  EXPECT_EQ(memory_refusal(job, need(4, 1)), "");
  EXPECT_EQ(memory_refusal(job, need(4, 1) - 1),
            fmt::format("layers_run: 4 layers need {} B of the GPU of rank 0, {} B are available; the nearest that "
                        "fits: 3, or all of them with tp 2",
                        need(4, 1), need(4, 1) - 1));
  EXPECT_EQ(memory_refusal(job, 1),
            fmt::format("layers_run: 4 layers need {} B of the GPU of rank 0, 1 B are available; no number of layers "
                        "fits: a smaller micro_batch or seq needs less",
                        need(4, 1)));
  ASSERT_GT(need(1, 1), need(4, 12));
  EXPECT_NE(memory_refusal(job, need(1, 1) - 1).find("no number of layers fits"), std::string::npos);
}

/// Gradients of all weights of an undivided job after one step from the first weights, before they are used.
template <class Number>
std::vector<float> gradients_of(const train::RankJob& job) {
  std::vector<float> all;
  on_fake_devices<Number>(job, [&](std::size_t, auto& core, const auto& walk) {
    walk(0, train::Part::gradients);
    const auto found = core.gradients();
    all.assign(found.begin(), found.end());
  });
  return all;
}

/// Size of the difference over that of `right`.
double relative_error(const std::vector<float>& right, const std::vector<float>& other) {
  double square = 0, difference = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    square += double{right[i]} * double{right[i]};
    difference += (double{other[i]} - double{right[i]}) * (double{other[i]} - double{right[i]});
  }
  return std::sqrt(difference / square);
}

// A number of BF16 has eight bits: what is kept so is off by at most a 256th, and a chain of some ten by some percent.
TEST(DeviceEngine, that_keeps_bf16_gets_the_gradients_of_fp32_within_its_rounding) {
  for (const train::ModelShape& model : {train::kDivisible, train::kExperts}) {
    train::RankJob job = exact_job({.layers = 2, .micro_batch = 2}, model);
    job.data = train::DataMode::gaussian;
    const auto right = gradients_of<float>(job);
    job.factors = train::FactorType::bf16;
    const double error = relative_error(right, gradients_of<train::Bf16>(job));
    EXPECT_GT(error, 1e-4);
    EXPECT_LT(error, 0.05);
  }
}

// E4M3 rounds by at most a 16th, E5M2 by an 8th, and a sum of many such numbers by less.
TEST(DeviceEngine, with_linear_layers_in_fp8_gets_the_gradients_of_fp32_within_their_rounding) {
  train::RankJob job = exact_job({.layers = 2, .micro_batch = 2});
  job.data = train::DataMode::gaussian;
  const auto right = gradients_of<float>(job);
  job.factors = train::FactorType::fp8;
  const double error = relative_error(right, gradients_of<train::Bf16>(job));
  EXPECT_GT(error, 0.01);
  EXPECT_LT(error, 0.25);
}

// Kept in BF16 a weight of 0.02 cannot take a step of 1e-6; its fp32 number can.
TEST(DeviceEngine, that_keeps_bf16_updates_weights_in_fp32) {
  train::RankJob job = exact_job({.layers = 2, .dp = 2, .zero = 1});
  job.data = train::DataMode::gaussian;
  job.factors = train::FactorType::bf16;
  on_fake_devices<train::Bf16>(job, [&](std::size_t, auto& core, const auto& walk) {
    const std::vector<float> first(core.master().begin(), core.master().end());
    const WeightPrint before = core.print(false);
    walk(0, train::Part::full);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      moved += core.master()[i] != first[i] ? 1 : 0;
      EXPECT_LT(std::abs(core.master()[i] - first[i]), 1e-5F);
    }
    EXPECT_GT(moved, first.size() / 4);
    EXPECT_EQ(core.print(false).not_finite, 0U);
    EXPECT_NE(core.print(false).shared, before.shared) << "some BF16 copies are the next number";
  });
}

TEST(DeviceEngine, that_keeps_bf16_and_has_replicas_keeps_them_equal) {
  train::RankJob job = exact_job({.layers = 4, .tp = 2, .cp = 2, .pp = 2, .dp = 2, .virtual_stages = 2, .zero = 1});
  job.data = train::DataMode::gaussian;
  for (const auto factors : {train::FactorType::bf16, train::FactorType::fp8}) {
    job.factors = factors;
    std::vector<train::RankPrint> prints(train::sized(job.plan.world()));
    on_fake_devices<train::Bf16>(job, [&](std::size_t rank, auto& core, const auto& walk) {
      for (std::uint64_t step = 0; step < kSteps; ++step) walk(step, train::Part::full);
      const WeightPrint found = core.print(false);
      EXPECT_EQ(found.not_finite, 0U);
      prints[rank] = {.shared = found.shared, .experts = found.experts};
    });
    EXPECT_EQ(train::votes_of(job.plan, prints, train::Ballot::weights).words, std::vector<std::string>());
  }
}

std::string refusal(const train::ModelShape& model, const train::ParallelPlan& plan,
                    train::FactorType factors = train::FactorType::tf32) {
  try {
    check_device_engine(model, plan, factors);
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
  EXPECT_EQ(refusal(train::kTinyDense, {.layers = 2, .seq = 132}, train::FactorType::bf16),
            "seq / (2 cp): 132 is no multiple of 8, which the engine on GPUs needs; the nearest that is: 136");
  EXPECT_EQ(refusal(train::kTinyDense, {.layers = 2, .seq = 128, .dp = 3, .zero = 1}),
            "zero: 262400 weights of one bucket do not divide among 3 "
            "replicas; the nearest number that does: 2");
}

}  // namespace
}  // namespace assay::train_gpu
