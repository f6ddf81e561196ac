// cuda_train_step as a process: what it refuses before it looks for a GPU, and that a rank alone does no harm.
#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"
#include "workloads/train/step/rank_job.h"

namespace assay::train_gpu {
namespace {

const std::string kCudaTrainStep = probe_file("cuda_train_step");

TEST(cuda_train_step, of_several_ranks_without_a_rendezvous_is_a_usage_error) {
  EXPECT_EQ(run_probe({kCudaTrainStep, "--world", "2"}).exit_code, 2);
}

TEST(cuda_train_step, in_a_word_that_it_does_not_have_is_a_usage_error) {
  for (const char* name : {"--data", "--launch", "--reference", "--type", "--attention"})
    EXPECT_EQ(run_probe({kCudaTrainStep, name, "constant"}).exit_code, 2) << name;
}

// Where no driver is, the machine says so; where one is, this asks for a GPU that is not there.
TEST(cuda_train_step, without_the_gpu_is_skipped_with_a_reason) {
  const auto result = run_probe({kCudaTrainStep, "--quick", "--device", "GPU-00000000-0000-0000-0000-000000000000"});
  EXPECT_EQ(result.exit_code, 77);
  const bool without_driver = result.out.find("libcuda.so.1 does not open") != std::string::npos;
  EXPECT_TRUE(without_driver || result.out.find(R"("status":"skip","reason":"no )") != std::string::npos) << result.out;
}

TEST(cuda_train_rank, of_another_parent_ends_at_once) {
  const train::RankJob job{
      .model = train::presets().front().shape, .plan = {.layers = 1, .seq = 64}, .factors = train::FactorType::fp8};
  auto words = train::rank_arguments(kCudaTrainStep.c_str(), {.job = job, .address = "GPU-0"});
  ASSERT_TRUE(train::rank_start(words));  // else the probe would take the words for its own, and refuse them with 2
  EXPECT_EQ(train::rank_start(words)->job.factors, train::FactorType::fp8);
  words.at(1) = "1";
  const auto alone = run_probe(words);
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_EQ(alone.out, "");
}

}  // namespace
}  // namespace assay::train_gpu
