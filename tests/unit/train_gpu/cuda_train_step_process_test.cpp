// cuda_train_step as a process: what it refuses before it looks for a GPU, and that a rank alone does no harm.
#include <gtest/gtest.h>

#include "tests/unit/probe_process.h"

namespace assay {
namespace {

const std::string kProbe = CUDA_TRAIN_STEP;

TEST(cuda_train_step, of_several_ranks_without_a_rendezvous_is_a_usage_error) {
  EXPECT_EQ(run_probe({kProbe, "--world", "2"}).exit_code, 2);
}

TEST(cuda_train_step, in_a_word_that_it_does_not_have_is_a_usage_error) {
  EXPECT_EQ(run_probe({kProbe, "--data", "constant"}).exit_code, 2);
}

// Where no driver is, the machine says so; where one is, this asks for a GPU that is not there.
TEST(cuda_train_step, without_the_gpu_is_skipped_with_a_reason) {
  const auto result = run_probe({kProbe, "--quick", "--device", "GPU-00000000-0000-0000-0000-000000000000"});
  EXPECT_EQ(result.exit_code, 77);
  EXPECT_NE(result.out.find(R"("status":"skip","reason":"no )"), std::string::npos) << result.out;
}

TEST(cuda_train_rank, of_another_parent_ends_at_once) {
  const std::string job =
      R"({"model":"{}","plan":[1,1,1,1,1,1,1,1,1,1,0,4],"rank":0,"data":"ring","beside":true,"bf16":true,"address":"GPU-0"})";
  const auto alone = run_probe({kProbe, "1", job});
  EXPECT_NE(alone.exit_code, 0);
}

}  // namespace
}  // namespace assay
