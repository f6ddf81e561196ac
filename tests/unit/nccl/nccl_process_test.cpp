// nccl_collective as a process: what it says where ranks cannot meet, and that a rank alone does no harm.
#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::nccl::nccl_process_test {
namespace {

const std::string kNcclCollective = probe_file("nccl_collective");
const std::string kToken(32, 'a');

TEST(nccl_collective, of_several_ranks_without_a_rendezvous_is_a_usage_error) {
  EXPECT_EQ(run_probe({kNcclCollective, "--world", "2"}).exit_code, 2);
}

TEST(nccl_collective, with_a_token_that_is_none_is_a_usage_error) {
  EXPECT_EQ(run_probe({kNcclCollective, "--world", "2", "--rendezvous", "127.0.0.1:1", "--token", "secret"}).exit_code,
            2);
}

TEST(nccl_collective, of_a_rank_beyond_the_world_is_a_usage_error) {
  EXPECT_EQ(run_probe({kNcclCollective, "--rank", "1"}).exit_code, 2);
}

TEST(nccl_collective, in_a_word_that_NCCL_does_not_have_is_a_usage_error) {
  EXPECT_EQ(run_probe({kNcclCollective, "--algorithm", "magic"}).exit_code, 2);
}

TEST(nccl_rank, of_another_parent_ends_at_once) {
  const auto alone = run_probe({kNcclCollective, "--local-rank", "1", "0", "2", "GPU-0", "all_reduce", "fp32"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_EQ(alone.out, "");
}

}  // namespace
}  // namespace assay::nccl::nccl_process_test
