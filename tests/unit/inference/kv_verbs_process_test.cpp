// kv_transfer over a fake libibverbs, from host memory and from that of a fake CUDA driver which no processor may
// touch: both ranks of a loopback in one process.
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"
#include "tests/unit/verbs/verbs_tree.h"

namespace assay::inference::kv_verbs_process_test {
namespace {

const std::string kFakeVerbs = build_file("tests/fakes/verbs"), kFakeCuda = build_file("tests/fakes/cuda");

class kv_verbs : public testing::Test {
 protected:
  kv_verbs() {
    verbs::add_port(tree_,
                    {.device = "fake0", .route = "pci0000:97/0000:97:01.0/0000:99:01.0/0000:9c:00.0", .numa_node = 1});
    verbs::add_function(tree_, "pci0000:97/0000:97:01.0/0000:99:00.0/0000:9b:00.0", 1);
    verbs::add_function(tree_, "pci0000:17/0000:17:01.0/0000:1b:00.0", 0);
    setenv("ASSAY_LIBRARY_PATH", (kFakeVerbs + ":" + kFakeCuda).c_str(), 1);
  }
  ~kv_verbs() override {
    unsetenv("ASSAY_LIBRARY_PATH");
    unsetenv("ASSAY_FAKE_VERBS");
    unsetenv("ASSAY_FAKE_CUDA");
  }
  [[nodiscard]] Record sent(const std::vector<std::string>& more) const {
    return record_of(probe_file("kv_transfer"), with({"--engine=verbs", "--path=loopback", "--tokens=64",
                                                      "--layers-run=4", "--transfers=2", "--root=" + tree_.path()},
                                                     more));
  }
  [[nodiscard]] static std::string text_of(const Record& record, const std::string& name) {
    for (const auto& one : record.conditions) {
      if (one.name == name) return std::get<std::string>(one.value);
    }
    return "";
  }

  FakeTree tree_;
};

}  // namespace

TEST_F(kv_verbs, every_block_is_written_where_the_receiver_s_table_says) {
  for (const std::vector<std::string>& layout :
       {std::vector<std::string>{"--layout=layer"}, {"--layout=page"}, {"--layout=page", "--streams=16"}}) {
    const Record record = sent(layout);
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(sum_of(record, "mismatches"), 0);
    for (const char* metric :
         {"loopback_bandwidth", "loopback_time", "loopback_first_block", "loopback_contiguous", "loopback_paging_cost"})
      EXPECT_EQ(count_of(record, metric), 1U) << metric;
    EXPECT_EQ(count_of(record, "retransmitted_share") + count_of(record, "forward_time"), 0U);
    EXPECT_EQ(text_of(record, "engine"), "verbs");
    EXPECT_EQ(text_of(record, "memory"), "host");
    EXPECT_EQ(text_of(record, "transport"), "RoCE v2");
    EXPECT_EQ(text_of(record, "gpu_path"), "");
  }
}

TEST_F(kv_verbs, a_gpu_s_memory_is_a_dma_buf_and_the_record_says_what_stood_in_for_it) {
  const Record record = sent({"--memory=gpu"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
  EXPECT_EQ(count_of(record, "loopback_bandwidth"), 1U);
  EXPECT_EQ(text_of(record, "gpu_path"), "direct");
  EXPECT_EQ(text_of(record, "registration"), "dma_buf");
  EXPECT_EQ(text_of(record, "gpu_nic_path"), "same_switch");
  setenv("ASSAY_FAKE_VERBS", "no_dmabuf", 1);
  const Record other = sent({"--memory=gpu"});
  ASSERT_EQ(other.end.status, Status::complete) << other.end.reason;
  EXPECT_EQ(text_of(other, "registration"), "peermem");
  EXPECT_EQ(text_of(other, "dma_buf_refused"), "ibv_reg_dmabuf_mr: Operation not supported");
}

TEST_F(kv_verbs, a_gpu_s_memory_is_staged_through_the_host_s_only_where_that_is_asked_for) {
  setenv("ASSAY_FAKE_VERBS", "no_gpu_memory", 1);
  const Record refused = sent({"--memory=gpu"});
  EXPECT_EQ(refused.end.status, Status::error);
  EXPECT_TRUE(refused.measurements.empty());
  EXPECT_NE(refused.end.reason.find("gpu_path staged copies through the host's memory"), std::string::npos)
      << refused.end.reason;
  const Record staged = sent({"--memory=gpu", "--gpu-path=staged"});
  ASSERT_EQ(staged.end.status, Status::complete) << staged.end.reason;
  EXPECT_EQ(sum_of(staged, "mismatches"), 0);
  EXPECT_EQ(text_of(staged, "memory"), "gpu");
  EXPECT_EQ(text_of(staged, "gpu_path"), "staged");
  EXPECT_EQ(text_of(staged, "registration"), "host");
}

TEST_F(kv_verbs, a_gpu_that_supports_neither_is_a_skip_with_the_same_hint) {
  setenv("ASSAY_FAKE_CUDA", "old", 1);
  const Record record = sent({"--memory=gpu"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("neither dma-buf nor GPUDirect RDMA"), std::string::npos) << record.end.reason;
  EXPECT_NE(record.end.reason.find("gpu_path staged"), std::string::npos) << record.end.reason;
}

TEST_F(kv_verbs, a_bit_that_an_adapter_or_a_gpu_turns_is_named_and_leaves_no_rate) {
  setenv("ASSAY_FAKE_VERBS", "corrupt", 1);
  Record record = sent({});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GT(sum_of(record, "mismatches"), 0);
  EXPECT_EQ(count_of(record, "loopback_bandwidth"), 0U);
  ASSERT_FALSE(record.notes.empty());
  EXPECT_NE(record.notes.front().find("transfer 1 from rank 0 to rank 1: layer 0 of page 0 has 1 wrong bytes"),
            std::string::npos)
      << record.notes.front();
  unsetenv("ASSAY_FAKE_VERBS");
  setenv("ASSAY_FAKE_CUDA", "bit_flip", 1);
  for (const char* path : {"--gpu-path=direct", "--gpu-path=staged"}) {
    record = sent({"--memory=gpu", path});
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_GT(sum_of(record, "mismatches"), 0) << path;
  }
}

TEST_F(kv_verbs, messages_that_never_end_and_such_that_fail_end_the_run_in_time) {
  setenv("ASSAY_FAKE_VERBS", "lose", 1);
  const Record lost = sent({"--stall-limit=1s"});
  EXPECT_EQ(lost.end.status, Status::error);
  EXPECT_NE(lost.end.reason.find("no message of a transfer was completed for 1 s"), std::string::npos)
      << lost.end.reason;
  setenv("ASSAY_FAKE_VERBS", "fail", 1);
  const Record failed = sent({});
  EXPECT_EQ(failed.end.status, Status::error);
  EXPECT_NE(failed.end.reason.find("transport retry counter exceeded"), std::string::npos) << failed.end.reason;
}

TEST_F(kv_verbs, a_cache_that_does_not_fit_into_free_gpu_memory_is_refused_with_the_most_tokens_that_do) {
  setenv("ASSAY_FAKE_CUDA", "full", 1);  // it would refuse an allocation in other words
  setenv("ASSAY_FAKE_CUDA_FREE_MIB", "4", 1);
  const Record shared = sent({"--memory=gpu", "--element=4"});  // 32 KiB of a token
  EXPECT_EQ(shared.end.status, Status::error);
  EXPECT_NE(shared.end.reason.find("tokens: their keys and values are 2097152 B, free memory of GPU-"),
            std::string::npos)
      << shared.end.reason;
  EXPECT_NE(shared.end.reason.find(", which both ranks share, is 2093056 B; the nearest that fits: 48, or give"),
            std::string::npos)
      << shared.end.reason;
  EXPECT_TRUE(shared.measurements.empty());
  unsetenv("ASSAY_FAKE_CUDA");
  setenv("ASSAY_FAKE_CUDA_FREE_MIB", "8", 1);
  const Record fits = sent({"--memory=gpu", "--element=4"});
  unsetenv("ASSAY_FAKE_CUDA_FREE_MIB");
  EXPECT_EQ(fits.end.status, Status::complete) << fits.end.reason;
}

TEST_F(kv_verbs, a_gpu_that_hangs_is_named_with_the_copy_within_seconds) {
  setenv("ASSAY_FAKE_CUDA", "host_copy_hangs", 1);
  setenv("ASSAY_DEVICE_SECONDS", "1", 1);
  const Record record = sent({"--memory=gpu"});
  unsetenv("ASSAY_DEVICE_SECONDS");
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_NE(record.end.reason.find("a copy to the GPU of "), std::string::npos) << record.end.reason;
  EXPECT_NE(record.end.reason.find(": the GPU is not done after 1 s and hangs; hint: "), std::string::npos);
}

TEST_F(kv_verbs, a_device_with_few_requests_gets_no_more) {
  setenv("ASSAY_FAKE_VERBS", "small", 1);
  const Record record = sent({"--streams=1"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
}

TEST_F(kv_verbs, what_does_not_go_together_is_refused_and_a_missing_driver_is_a_skip_that_says_where_it_looked) {
  const auto reason = [&](const std::vector<std::string>& more) { return sent(more).end.reason; };
  EXPECT_NE(reason({"--streams=17"}).find("streams: 17 queue pairs are over 16"), std::string::npos);
  EXPECT_NE(reason({"--gpu-path=staged"}).find("gpu_path: the memory is the host's; hint: --memory gpu"),
            std::string::npos);
  EXPECT_NE(record_of(probe_file("kv_transfer"), {"--memory=gpu"})
                .end.reason.find("memory: engine tcp sends from host memory; hint: --engine verbs"),
            std::string::npos);
  setenv("ASSAY_LIBRARY_PATH", (kFakeVerbs + ":" + build_file("tests/fakes/old_cuda")).c_str(), 1);
  const Record record = sent({"--memory=gpu"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("old_cuda/libcuda.so.1 has no function cuInit"), std::string::npos)
      << record.end.reason;
}

}  // namespace assay::inference::kv_verbs_process_test
