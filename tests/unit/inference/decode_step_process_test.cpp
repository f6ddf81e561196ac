// decode_step as a process: every step right, no rate of whole numbers, refusals with what would do.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"

namespace assay::inference::decode_step_process_test {
namespace {

const std::string kDecodeStep = probe_file("decode_step");
const std::vector<std::string> kShort = {"--model=tiny-dense", "--batches=1,3", "--contexts=40", "--steps=5",
                                         "--threads=1"};

Record ended(const std::vector<std::string>& more) { return record_of(kDecodeStep, with(kShort, more)); }

TEST(DecodeStep, is_right_and_has_a_latency_over_a_floor_for_each_batch) {
  const Record record = ended({});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
  EXPECT_EQ(count_of(record, "latency"), 2U);
  for (const char* metric : {"over_floor", "floor_time", "floor_bandwidth", "tokens_rate"})
    EXPECT_EQ(count_of(record, metric), 2U) << metric;
  EXPECT_EQ(count_of(record, "latency_p99"), 0U);  // of five steps there is none
}

TEST(DecodeStep, in_whole_numbers_yields_no_rate) {
  const Record record = ended({"--data=ring"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
  EXPECT_EQ(count_of(record, "latency"), 2U);
  EXPECT_EQ(count_of(record, "tokens_rate") + count_of(record, "over_floor"), 0U);
}

TEST(DecodeStep, on_gpus_is_right_or_a_skip_that_says_what_is_missing_and_where_it_was_looked_for) {
  const Record record = record_of(kDecodeStep, {"--engine=cuda", "--model=tiny-dense", "--quick"});
  if (record.end.status == Status::complete) {
    EXPECT_EQ(sum_of(record, "mismatches"), 0);
    return;
  }
  EXPECT_EQ(record.end.status, Status::skip) << record.end.reason;
  EXPECT_TRUE(record.measurements.empty());
  const auto says = [&](const char* words) { return record.end.reason.find(words) != std::string::npos; };
  EXPECT_TRUE((says("libcuda.so.1") && says("searched the loader's folders and")) || says("shows no GPU") ||
              says("without the CUDA Toolkit") || says("the NVIDIA driver"))
      << record.end.reason;
}

void expect_refused(const std::vector<std::string>& more, const std::string& part) {
  const Record record = record_of(kDecodeStep, more);
  EXPECT_TRUE(record.measurements.empty());
  EXPECT_NE(record.end.reason.find(part), std::string::npos) << record.end.reason;
}

TEST(DecodeStep, refuses_what_cannot_be_run) {
  expect_refused({"--model=tiny-moe"}, "model: experts are not run by this probe; give a dense model");
  expect_refused({"--batches=0"}, "batches: '0' is not a size such as 8");
  expect_refused({"--batches=257"}, "batches: 257 is not from 1 to 256");
  expect_refused({"--contexts=2000000"}, "contexts: 2000000 is not from 1 to 1048576");
  expect_refused({"--steps=4"}, "steps: 4 is not from 5 to 100000");
  expect_refused({"--model=llama3-405b"}, "layers_run: 126 layers, 8 sequences of 4096 tokens");
  expect_refused({"--device=0"}, "device: engine host measures no GPU; hint: --engine cuda");
  expect_refused({"--engine=cuda", "--batches=65"}, "batches: 65 is over 64, the most of engine cuda");
  expect_refused({"--engine=cuda", "--contexts=100"}, "the nearest: 96 and 112");
}

}  // namespace
}  // namespace assay::inference::decode_step_process_test
