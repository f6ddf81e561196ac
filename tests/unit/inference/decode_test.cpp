// A token through a small model: exact on any number of threads, and what is skipped or changed is seen.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/inference/recorded.h"
#include "workloads/inference/decode_reference.h"
#include "workloads/inference/decode_run.h"

namespace assay::inference {
namespace {

const train::ModelShape kModel{
    .layers = 2, .hidden = 64, .ffn = 96, .heads = 4, .kv_heads = 2, .head_dim = 16, .vocab = 80};

/// One set of weights and cache of `shape`.
class OneSet {
 public:
  OneSet(const DecodeShape& shape, DecodeNumbers numbers)
      : sets_(shape, shape.cache_bytes(), 1, host::Pages::base), set_(sets_.set(shape, 0)) {
    fill_sets(shape, numbers, 5, set_, {}, 0, 1);
  }
  DecodeSet& set() { return set_; }

 private:
  DecodeSets sets_;
  DecodeSet set_;
};

std::vector<float> walked(const DecodeShape& shape, DecodeNumbers numbers, const DecodeSet& set, std::size_t threads,
                          const DecodeCode& code = decode_code(), std::uint64_t input = 0) {
  DecodeWalk walk(shape, numbers, code, threads);
  walk.begin(set, decode_input(shape, numbers, 5, input));
  {
    std::vector<std::jthread> crew;
    for (std::size_t thread = 0; thread < threads; ++thread) crew.emplace_back([&, thread] { walk.step(thread); });
  }
  return {walk.logits().begin(), walk.logits().end()};
}

std::vector<float> reference(const DecodeShape& shape, const DecodeSet& set) {
  return ring_logits(shape, set, decode_input(shape, DecodeNumbers::ring, 5, 0));
}

TEST(DecodeShape, reads_the_weights_that_multiply_a_token_and_every_sequence_s_cache) {
  const DecodeShape shape{.model = train::kLlama3_8b, .batch = 2, .context = 4096};
  EXPECT_EQ(shape.weight_bytes(), 2 * 7'504'658'432U);
  EXPECT_EQ(shape.cache_bytes(), 2 * 4096 * 131'072U);
}

TEST(DecodeWalk, in_whole_numbers_is_what_plain_sums_give_for_batches_contexts_and_threads) {
  for (const std::int64_t batch : {1, 5}) {
    for (const std::int64_t context : {1, 17, 256, 600}) {
      const DecodeShape shape{.model = kModel, .batch = batch, .context = context};
      OneSet one(shape, DecodeNumbers::ring);
      const auto expected = reference(shape, one.set());
      EXPECT_NE(print_of(expected), print_of(std::vector<float>(expected.size(), 0)));
      for (const std::size_t threads : {1, 2, 3})
        EXPECT_EQ(walked(shape, DecodeNumbers::ring, one.set(), threads), expected) << batch << " " << context;
      EXPECT_EQ(walked(shape, DecodeNumbers::ring, one.set(), 1, plain_decode_code()), expected);
    }
  }
}

TEST(DecodeWalk, in_normal_numbers_has_the_same_bits_on_any_threads_and_finite_ones) {
  const DecodeShape shape{.model = kModel, .batch = 3, .context = 300};
  OneSet one(shape, DecodeNumbers::gaussian);
  const auto alone = walked(shape, DecodeNumbers::gaussian, one.set(), 1);
  for (const float value : alone) ASSERT_TRUE(std::isfinite(value));
  EXPECT_EQ(print_of(alone), print_of(walked(shape, DecodeNumbers::gaussian, one.set(), 3)));
}

TEST(DecodeRun, a_step_whose_logits_are_no_numbers_or_the_same_for_each_input_is_an_error) {
  const DecodeShape shape{.model = kModel, .batch = 1, .context = 40};
  OneSet one(shape, DecodeNumbers::gaussian);
  const auto prints = [&] {
    std::vector<std::uint64_t> all;
    for (const std::uint64_t input : {0, 1})
      all.push_back(print_of(walked(shape, DecodeNumbers::gaussian, one.set(), 1, decode_code(), input)));
    return all;
  };
  EXPECT_NO_THROW(demand_different(prints()));
  one.set().weights[0] = narrow(std::numeric_limits<float>::infinity());  // soon it is minus infinity as well
  EXPECT_THROW(demand_different(prints()), std::runtime_error);
}

TEST(DecodeWalk, one_changed_weight_or_key_of_the_cache_changes_the_print) {
  const DecodeShape shape{.model = kModel, .batch = 1, .context = 40};
  OneSet one(shape, DecodeNumbers::ring);
  const auto right = print_of(reference(shape, one.set()));
  one.set().weights[11] = narrow(wide(one.set().weights[11]) == 1 ? 2.0F : 1.0F);
  EXPECT_NE(print_of(walked(shape, DecodeNumbers::ring, one.set(), 2)), right);
  OneSet two(shape, DecodeNumbers::ring);
  two.set().cache[5] = narrow(wide(two.set().cache[5]) == 1 ? 2.0F : 1.0F);
  EXPECT_NE(print_of(walked(shape, DecodeNumbers::ring, two.set(), 2)), right);
}

TEST(DecodeWalk, a_thread_that_does_nothing_leaves_numbers_that_do_not_pass) {
  const DecodeShape shape{.model = kModel, .batch = 1, .context = 40};
  OneSet one(shape, DecodeNumbers::ring);
  DecodeWalk walk(shape, DecodeNumbers::ring, decode_code(), 1);
  walk.begin(one.set(), decode_input(shape, DecodeNumbers::ring, 5, 0));
  EXPECT_NE(print_of(walk.logits()), print_of(reference(shape, one.set())));
}

TEST(DecodeWalk, a_reading_depends_on_every_word_of_weights_and_cache) {
  const DecodeShape shape{.model = kModel, .batch = 1, .context = 40};
  OneSet one(shape, DecodeNumbers::ring);
  DecodeWalk walk(shape, DecodeNumbers::ring, decode_code(), 3);
  walk.begin(one.set(), decode_input(shape, DecodeNumbers::ring, 5, 0));
  const auto all = [&] { return walk.read(0) + walk.read(1) + walk.read(2); };
  std::uint64_t words = 0;
  for (const auto& part : {one.set().weights, one.set().cache}) {
    for (std::size_t i = 0; i < part.size(); ++i) words += std::uint64_t{part[i]} << (i % 4 * 16);
  }
  EXPECT_EQ(all(), words);
}

TEST(DecodeKernels, bf16_is_the_nearest_with_ties_to_even) {
  EXPECT_EQ(wide(narrow(1.0F)), 1.0F);
  EXPECT_EQ(wide(narrow(1.00390625F)), 1.0F);       // half of a step: to even
  EXPECT_EQ(wide(narrow(1.01171875F)), 1.015625F);  // and one and a half
  EXPECT_EQ(wide(narrow(-3.0F)), -3.0F);
}

const std::vector<std::string_view> kMetrics = {"latency",         "latency_p99", "tail",        "floor_time",
                                                "floor_bandwidth", "over_floor",  "tokens_rate", "mismatches"};

DecodeFigures figures() {
  DecodeFigures all;
  all.shape = {.model = kModel, .batch = 4, .context = 8};
  all.past_cache = true;
  all.latency = {0.5, 0.5};
  all.floor = {0.25, 0.25};
  all.over_floor = {2};
  return all;
}

Recorded lines(const DecodeFigures& all, DecodeNumbers numbers = DecodeNumbers::gaussian) {
  return recorded(kMetrics, [&](Recorder& record) {
    record_decode({.model = kModel, .numbers = numbers, .cache = {1}}, all, {}, record);
  });
}

TEST(DecodeRecord, has_the_rate_of_a_batch_and_a_tail_only_of_a_hundred_steps) {
  auto all = figures();
  EXPECT_EQ(lines(all).at({"tokens_rate", "4"}), (std::vector<double>{8, 8}));
  EXPECT_FALSE(lines(all).contains({"latency_p99", "4"}));
  all.latency.assign(100, 0.5);
  all.latency[7] = 5;
  EXPECT_TRUE(lines(all).contains({"tail", "4"}));
}

TEST(DecodeRecord, of_whole_numbers_wrong_results_and_what_a_cache_may_hold_has_no_rate) {
  EXPECT_FALSE(lines(figures(), DecodeNumbers::ring).contains({"tokens_rate", "4"}));
  EXPECT_FALSE(lines(figures(), DecodeNumbers::ring).contains({"over_floor", "4"}));
  auto wrong = figures();
  wrong.mismatches = 1;
  EXPECT_FALSE(lines(wrong).contains({"tokens_rate", "4"}));
  EXPECT_EQ(lines(wrong).at({"mismatches", "4"}), std::vector<double>{1});
  auto cached = figures();
  cached.past_cache = false;
  for (const char* metric : {"tokens_rate", "over_floor", "floor_time", "floor_bandwidth"})
    EXPECT_FALSE(lines(cached).contains({metric, "4"})) << metric;
}

}  // namespace
}  // namespace assay::inference
