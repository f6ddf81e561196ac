// Fused attention by a library in cuDNN's place, which runs the operations of a graph one after the other on the host:
// what the graphs calculate, and what is refused. Nothing here says that cuDNN has a plan for them.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "tests/unit/paths.h"
#include "tests/unit/train/ranks.h"
#include "tests/unit/train_gpu/fake_network.h"
#include "workloads/train_gpu/attention_trial.h"
#include "workloads/train_gpu/fused_attention.h"

namespace assay::train_gpu::fused {
namespace {

constexpr std::size_t kBlock = 6;

class Fused : public ::testing::Test {
 protected:
  Fused() { setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/fake_cudnn").c_str(), 1); }
  ~Fused() override {
    for (const char* name : {"ASSAY_LIBRARY_PATH", "FAKE_CUDNN", "FAKE_CUDNN_VERSION"}) unsetenv(name);
  }
  Fused(const Fused&) = delete;
  Fused& operator=(const Fused&) = delete;
};

train::RankJob job_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t micro_batch,
                      train::AttentionKind kind = train::AttentionKind::fused) {
  train::ModelShape model = train::kDivisible;
  model.heads = heads;
  model.kv_heads = kv_heads;
  return {.model = model,
          .plan = {.layers = 2, .seq = 16, .micro_batch = micro_batch, .micro_batches = 2},
          .factors = train::FactorType::bf16,
          .attention = kind};
}

SumOrder order_of(const train::RankJob& job) {
  return job.attention == train::AttentionKind::fused_unordered ? SumOrder::any : SumOrder::one;
}

struct Trial {
  AttentionTrial<FakeDeviceOf<train::Bf16>>::Result result;
  float tolerance;
};
/// Fused attention of `job` beside products on a fake device.
Trial trial_of(train::RankJob job) {
  FusedAttention attention(heads_of(job), order_of(job));
  job.attention_room = attention.room();
  FakeDeviceOf<train::Bf16> device(job, rehearsed_both(job));
  device.fused = &attention;
  return {.result = AttentionTrial(job, kBlock, device).compare(),
          .tolerance = attention_tolerance(heads_of(job), kBlock)};
}

TEST_F(Fused, attention_is_that_of_products_within_the_rounding_of_bf16) {
  for (const auto kind : {train::AttentionKind::fused, train::AttentionKind::fused_unordered}) {
    for (const auto& job : {job_of(12, 12, 1, kind), job_of(12, 4, 1, kind), job_of(12, 1, 2, kind)}) {
      const auto [found, tolerance] = trial_of(job);
      EXPECT_EQ(found.beside_products.count, 0U);
      EXPECT_EQ(found.unequal, 0U);
      EXPECT_GT(found.beside_products.largest, 0.01) << "both round";
      EXPECT_LT(found.beside_products.largest, 0.8);
      EXPECT_LT(tolerance, 0.3F);
    }
  }
}

TEST_F(Fused, attention_with_one_wrong_number_of_any_result_is_found) {
  for (const int id : {kAttended, kQueriesGradient, kKeysGradient, kValuesGradient}) {
    setenv("FAKE_CUDNN", fmt::format("wrong-{}", id).c_str(), 1);
    const auto found = trial_of(job_of(12, 4, 1)).result;
    EXPECT_GE(found.beside_products.count, 1U) << id;
    EXPECT_EQ(found.unequal, 0U) << id;
  }
}

TEST_F(Fused, attention_whose_last_bit_differs_in_a_second_run_is_found) {
  for (const int id : {kQueriesGradient, kKeysGradient, kValuesGradient}) {
    setenv("FAKE_CUDNN", fmt::format("drifts-{}", id).c_str(), 1);
    const auto found = trial_of(job_of(12, 4, 1)).result;
    EXPECT_EQ(found.beside_products.count, 0U) << id;
    EXPECT_EQ(found.unequal, 1U) << id;
  }
}

/// Gradients of all weights after one step of one rank.
template <class Number>
std::vector<float> gradients_of(const train::RankJob& job, FusedAttention* attention) {
  FakeDeviceOf<Number> device(job, kBlock);
  device.fused = attention;
  DeviceCore core(job, kBlock, device);
  EXPECT_EQ(device.taken(), rehearsed(job, kBlock).memory);
  FakeNetwork network;
  FakeCollectives collectives(network, job.plan, 0);
  DeviceLine<FakeCollectives, Number> line(job, core, collectives);
  train::Executor executor(core.ops(), true, core, line);
  core.start(0, train::Part::gradients);
  (void)executor.walk(
      train::Part::gradients, [](std::size_t) {}, [](std::size_t) {});  // fake times
  return {core.gradients().begin(), core.gradients().end()};
}

TEST_F(Fused, attention_gives_a_step_the_gradients_of_fp32_within_the_rounding_of_bf16) {
  train::RankJob job = job_of(12, 4, 2);
  FusedAttention attention(heads_of(job), SumOrder::one);
  job.attention_room = attention.room();
  train::RankJob wide = job;
  wide.factors = train::FactorType::tf32;
  const auto right = gradients_of<float>(wide, nullptr), found = gradients_of<train::Bf16>(job, &attention);
  double square = 0, difference = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    square += double{right[i]} * double{right[i]};
    difference += (double{found[i]} - double{right[i]}) * (double{found[i]} - double{right[i]});
  }
  EXPECT_GT(std::sqrt(difference / square), 1e-4);
  EXPECT_LT(std::sqrt(difference / square), 0.05);
}

TEST_F(Fused, attention_keeps_statistics_and_its_room_instead_of_probabilities_and_scores) {
  train::RankJob job = job_of(12, 4, 1);
  job.plan.seq = 256;  // whole pieces of memory
  job.plan.micro_batches = 1;
  FusedAttention attention(heads_of(job), SumOrder::any);
  constexpr std::uint64_t kSums = std::uint64_t{12} * 256 * sizeof(float), kFakeWorkspace = 512;
  EXPECT_EQ(attention.room(), kFakeWorkspace + kSums + kSums * 8) << "sums of rows; gradients of queries";
  EXPECT_EQ(FusedAttention(heads_of(job), SumOrder::one).room(), kFakeWorkspace + kSums);
  job.attention_room = attention.room();
  train::RankJob products = job;
  products.attention = train::AttentionKind::products;
  constexpr std::uint64_t kScores = std::uint64_t{4} * 256 * 256 * 2,
                          kProbabilities = std::uint64_t{12} * 256 * 256 * 2;
  EXPECT_EQ(rehearsed(products).memory - rehearsed(job).memory,
            2 * (kProbabilities - kSums) + DeviceAttention<FakeDevice>::scratch(heads_of(job), kQueriesTogether) * 2 -
                job.attention_room);
  EXPECT_EQ(DeviceAttention<FakeDevice>::scratch(heads_of(job), 256) * 2, kScores);
  EXPECT_LT(rehearsed(job).shapes.size(), rehearsed_both(job).shapes.size()) << "the comparison multiplies, too";
}

std::string words_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

const AttentionOffer kOffer{.words = "cuDNN 9.19.0, engines 2 and 6", .room = 512, .ordered = true};
const AttentionOffer kOlder{.words = "cuDNN 9.18.1, engines 2 and 6", .room = 1024, .ordered = true};
const AttentionOffer kNone{.reason = "cuDNN is not here: libcudnn.so.9 does not open"};

TEST(AttentionChoice, is_fused_where_every_rank_offers_the_same) {
  AttentionOffer larger = kOffer;
  larger.room = 1024;
  for (const auto& [asked, kind] :
       {std::pair(train::AttentionKind::automatic, train::AttentionKind::fused),
        std::pair(train::AttentionKind::fused, train::AttentionKind::fused),
        std::pair(train::AttentionKind::fused_unordered, train::AttentionKind::fused_unordered)}) {
    const AttentionChoice found = chosen_attention(job_of(12, 4, 1, asked), {kOffer, larger}, 1024);
    EXPECT_EQ(found.kind, kind);
    EXPECT_EQ(found.room, 1024U);
    EXPECT_TRUE(found.ordered);
    EXPECT_EQ(found.words, "fused by cuDNN 9.19.0, engines 2 and 6; compared with products, not bit by bit");
  }
}

TEST(AttentionChoice, falls_back_to_products_with_the_reason_of_the_first_rank_that_has_one) {
  const train::RankJob job = job_of(12, 4, 1, train::AttentionKind::automatic);
  const AttentionChoice none = chosen_attention(job, {kOffer, kNone}, 1024);
  EXPECT_EQ(none.kind, train::AttentionKind::products);
  EXPECT_EQ(none.words,
            "products over blocks of 1024 queries, probabilities kept; not fused: rank 1: cuDNN is not here: "
            "libcudnn.so.9 does not open");
  EXPECT_EQ(chosen_attention(job, {kOffer, kOlder}, 1024).words,
            "products over blocks of 1024 queries, probabilities kept; not fused: rank 1 has cuDNN 9.18.1, engines 2 "
            "and 6; rank 0 has cuDNN 9.19.0, engines 2 and 6");
  EXPECT_EQ(chosen_attention(job_of(12, 4, 1, train::AttentionKind::products), {}, 1024).words,
            "products over blocks of 1024 queries, probabilities kept; not fused: products were asked for");
}

TEST(AttentionChoice, that_was_asked_for_and_cannot_be_is_refused) {
  EXPECT_EQ(words_of([] { (void)chosen_attention(job_of(12, 4, 1), {kNone}, 1024); }),
            "attention: it cannot be fused: rank 0: cuDNN is not here: libcudnn.so.9 does not open; the nearest that "
            "runs: products");
  train::RankJob divided = job_of(12, 4, 1, train::AttentionKind::fused_unordered);
  divided.plan.cp = 2;
  EXPECT_EQ(words_of([&] { (void)chosen_attention(divided, {}, 1024); }),
            "attention: it cannot be fused: it takes whole sequences, cp is 2; the nearest that runs: products");
}

TEST(AttentionChoice, has_a_reason_not_to_ask_for_a_library) {
  train::RankJob job = job_of(12, 4, 1);
  EXPECT_EQ(unfused_reason(job), "");
  job.plan.cp = 2;
  EXPECT_EQ(unfused_reason(job), "it takes whole sequences, cp is 2");
  job.data = train::DataMode::ring;
  EXPECT_EQ(unfused_reason(job), "exact steps are products, data is ring");
  EXPECT_FALSE(fuses(job));
  job.factors = train::FactorType::tf32;
  EXPECT_EQ(unfused_reason(job), "it takes BF16 numbers, type is tf32");
}

TEST_F(Fused, attention_names_its_library_and_engines) {
  EXPECT_EQ(FusedAttention(heads_of(job_of(12, 4, 1)), SumOrder::one).words(),
            "cuDNN 9.19.0, engines 3 and 3, sums of the backward pass in one order");
  EXPECT_EQ(FusedAttention(heads_of(job_of(12, 4, 1)), SumOrder::any).words(),
            "cuDNN 9.19.0, engines 3 and 3, sums of the backward pass in any order");
}

TEST_F(Fused, attention_of_an_older_library_is_a_skip_with_its_version_and_path) {
  setenv("FAKE_CUDNN_VERSION", "91001", 1);
  EXPECT_THROW(FusedAttention::demand_library(), Skip);
  EXPECT_EQ(words_of([] { FusedAttention::demand_library(); }),
            "cuDNN 9.10.1 at " + build_file("tests/fakes/fake_cudnn/libcudnn.so.9") + " is older than 9.10.2");
}

TEST_F(Fused, attention_of_another_library_is_a_skip_with_the_function_that_it_lacks) {
  const std::string folder = build_file("tests/fakes/old_cudnn");
  setenv("ASSAY_LIBRARY_PATH", folder.c_str(), 1);
  EXPECT_THROW(FusedAttention::demand_library(), Skip);
  EXPECT_EQ(words_of([] { FusedAttention::demand_library(); }),
            "cuDNN at " + folder +
                "/libcudnn.so.9 has no function cudnnGetVersion: it is of another version than this probe needs");
}

TEST_F(Fused, attention_without_a_plan_says_what_each_engine_said) {
  setenv("FAKE_CUDNN", "no_plan", 1);
  const auto made = [] { FusedAttention(heads_of(job_of(12, 4, 1)), SumOrder::one_if_offered); };
  EXPECT_THROW(made(), cudnn::Unsupported);
  EXPECT_EQ(words_of(made),
            "cuDNN 9.19.0 has no plan: engine 3: CUDNN_STATUS_NOT_SUPPORTED: no engine takes this shape; engine 3: "
            "CUDNN_STATUS_NOT_SUPPORTED: no engine takes this shape");
}

TEST_F(Fused, attention_of_9_15_takes_sequences_of_a_multiple_of_128) {
  setenv("FAKE_CUDNN_VERSION", "91500", 1);
  EXPECT_EQ(words_of([] { FusedAttention(heads_of(job_of(12, 4, 1)), SumOrder::one); }),
            "cuDNN 9.15.0: the backward pass of 9.15.0 and before takes sequences of a multiple of 128 tokens, these "
            "have 16");
}

TEST_F(Fused, attention_that_fails_ends_with_the_words_of_the_library) {
  train::RankJob job = job_of(12, 4, 1);
  FusedAttention attention(heads_of(job), SumOrder::one);
  job.attention_room = attention.room();
  setenv("FAKE_CUDNN", "fails", 1);
  EXPECT_EQ(words_of([&] { (void)gradients_of<train::Bf16>(job, &attention); }),
            "cuDNN 9.19.0: running a plan: CUDNN_STATUS_EXECUTION_FAILED: the kernel was not launched");
}

}  // namespace
}  // namespace assay::train_gpu::fused
