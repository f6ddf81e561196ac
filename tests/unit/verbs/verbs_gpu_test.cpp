// The verbs probes with their payload in a GPU's memory: both ranks of a loopback over a fake libibverbs and a fake
// CUDA driver whose memory no processor may touch.
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"
#include "tests/unit/verbs/verbs_tree.h"

namespace assay::verbs {
namespace {

const std::string kVerbs = build_file("tests/fakes/verbs");
const std::string kCuda = build_file("tests/fakes/cuda");
const std::string kBoth = kVerbs + ":" + kCuda;
const std::string kNear = "GPU-9b9b9b9b-9b9b-9b9b-9b9b-9b9b9b9b9b9b", kFar = "GPU-1b1b1b1b-1b1b-1b1b-1b1b-1b1b1b1b1b1b";

/// A machine with one port of the fake library, and beside it the second of the fake driver's GPUs on the bus.
class verbs_gpu : public testing::Test {
 protected:
  verbs_gpu() {
    add_port(tree_, {.device = "fake0", .route = "pci0000:97/0000:97:01.0/0000:99:01.0/0000:9c:00.0", .numa_node = 1});
    add_function(tree_, "pci0000:97/0000:97:01.0/0000:99:00.0/0000:9b:00.0", 1);
    add_function(tree_, "pci0000:17/0000:17:01.0/0000:1b:00.0", 0);
    setenv("ASSAY_LIBRARY_PATH", kBoth.c_str(), 1);
    unsetenv("ASSAY_FAKE_VERBS");
    unsetenv("ASSAY_FAKE_CUDA");
  }
  [[nodiscard]] Record bandwidth(std::vector<std::string> more = {}, const std::string& memory = "gpu") const {
    more.insert(more.begin(), {"--root", tree_.path(), "--path", "loopback", "--memory", memory, "--sizes", "2,64KiB",
                               "--buffer", "1MiB"});
    more.insert(more.end(),
                {"--min-samples", "6", "--window", "2ms", "--warmup-limit", "10ms", "--time-limit", "50ms"});
    return record_of(probe_file("verbs_bandwidth"), more);
  }
  [[nodiscard]] Record latency(const std::string& operation = "send") const {
    return record_of(probe_file("verbs_latency"),
                     {"--root", tree_.path(), "--path", "loopback", "--memory", "gpu", "--operation", operation,
                      "--sizes", "2,4KiB", "--messages", "20", "--batches", "10", "--warmup", "5"});
  }

  FakeTree tree_;
};

/// The text of a condition; empty when it is absent.
std::string text_of(const Record& record, const std::string& name) {
  const auto value = value_of(record, name, {"node", std::get<std::string>(record.start.host.at("name"))});
  return value ? std::get<std::string>(*value) : "";
}

}  // namespace

TEST_F(verbs_gpu, every_byte_goes_from_one_gpu_memory_to_another_and_is_compared) {
  for (const std::string operation : {"write", "read", "send"}) {
    const Record record = bandwidth({"--operation", operation, "--qps", "3"});
    ASSERT_EQ(record.end.status, Status::complete) << operation << ": " << record.end.reason;
    EXPECT_GT(sum_of(record, "loopback_bandwidth"), 0);
    EXPECT_EQ(count_of(record, "mismatches"), 2U);
    EXPECT_EQ(sum_of(record, "mismatches"), 0) << operation;
    EXPECT_EQ(text_of(record, "memory"), "gpu");
    EXPECT_EQ(text_of(record, "registration"), "dma_buf");
  }
}

TEST_F(verbs_gpu, latency_by_send_and_read_is_measured_and_compared_to_the_last_byte) {
  for (const std::string operation : {"send", "read"}) {
    const Record record = latency(operation);
    ASSERT_EQ(record.end.status, Status::complete) << operation << ": " << record.end.reason;
    EXPECT_EQ(count_of(record, "latency"), 2U);
    EXPECT_EQ(count_of(record, "mismatches"), 2U);
    EXPECT_EQ(sum_of(record, "mismatches"), 0) << operation;
    EXPECT_EQ(text_of(record, "registration"), "dma_buf");
  }
}

TEST_F(verbs_gpu, nothing_is_inlined_from_a_gpu_even_where_the_device_would) {
  setenv("ASSAY_FAKE_VERBS", "inlines", 1);
  const Record record = latency();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "inlined", {"node", std::get<std::string>(record.start.host.at("name"))}),
            Value{std::int64_t{0}});
}

TEST_F(verbs_gpu, latency_by_write_is_refused_with_a_hint) {
  const Record record = latency("write");
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_NE(record.end.reason.find("hint: --operation send, or read"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_gpu, the_record_tells_the_gpu_and_how_near_it_is) {
  const Record record = bandwidth();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(text_of(record, "gpu"), kNear);
  EXPECT_EQ(text_of(record, "gpu_pci_bus_id"), "0000:9b:00.0");
  EXPECT_EQ(text_of(record, "gpu_name"), "Fake H200");
  EXPECT_EQ(text_of(record, "gpu_nic_path"), "same_switch");
  EXPECT_EQ(text_of(record, "cuda_driver"), "13.0");
  EXPECT_EQ(text_of(record, "dma_buf_refused"), "");
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(value_of(record, "gpu_nic_bridges", node), Value{std::int64_t{3}});
  EXPECT_EQ(value_of(record, "gpu_numa_node", node), Value{std::int64_t{1}});
}

TEST_F(verbs_gpu, a_gpu_is_taken_by_uuid_or_address_however_far_it_is) {
  for (const std::string& name : {kFar, std::string("00000000:1B:00.0")}) {
    const Record record = bandwidth({"--gpu", name});
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(text_of(record, "gpu"), kFar);
    EXPECT_EQ(text_of(record, "gpu_nic_path"), "other_numa_node");
  }
}

TEST_F(verbs_gpu, an_instance_of_a_partitioned_gpu_is_named_as_one) {
  setenv("ASSAY_FAKE_CUDA", "mig", 1);
  const std::string name = "MIG" + kNear.substr(3);
  const Record record = bandwidth({"--gpu", name});
  unsetenv("ASSAY_FAKE_CUDA");
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(text_of(record, "gpu"), name);
}

TEST_F(verbs_gpu, a_gpu_that_is_not_here_is_a_skip_that_names_it_and_the_others) {
  const Record record = bandwidth({"--gpu", "GPU-77"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("no GPU 'GPU-77'; it has " + kFar + " at 0000:1b:00.0"), std::string::npos)
      << record.end.reason;
}

TEST_F(verbs_gpu, where_dma_buf_is_refused_peermem_stands_in_and_the_record_says_so) {
  setenv("ASSAY_FAKE_VERBS", "no_dmabuf", 1);
  for (const Record& record : {bandwidth(), latency()}) {
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(text_of(record, "memory"), "gpu");
    EXPECT_EQ(text_of(record, "registration"), "peermem");
    EXPECT_EQ(text_of(record, "dma_buf_refused"), "ibv_reg_dmabuf_mr: Operation not supported");
    EXPECT_EQ(sum_of(record, "mismatches"), 0);
  }
}

TEST_F(verbs_gpu, a_driver_that_lends_no_dma_buf_is_told_from_a_kernel_that_takes_none) {
  setenv("ASSAY_FAKE_CUDA", "no_range", 1);
  EXPECT_EQ(text_of(bandwidth(), "dma_buf_refused"),
            "cuMemGetHandleForAddressRange: an error without a name (CUDA error 1)");
  setenv("ASSAY_FAKE_CUDA", "no_dma_buf", 1);
  EXPECT_EQ(text_of(bandwidth(), "dma_buf_refused"), "the driver does not share memory of " + kNear + " as a dma-buf");
}

TEST_F(verbs_gpu, libraries_without_the_functions_for_dma_buf_leave_peermem_and_say_so) {
  setenv("ASSAY_LIBRARY_PATH", (kVerbs + "/no_dmabuf:" + kCuda).c_str(), 1);
  const Record verbs = bandwidth();
  ASSERT_EQ(verbs.end.status, Status::complete) << verbs.end.reason;
  EXPECT_EQ(text_of(verbs, "registration"), "peermem");
  EXPECT_NE(text_of(verbs, "dma_buf_refused").find("has no ibv_reg_dmabuf_mr (rdma-core 34)"), std::string::npos);
  setenv("ASSAY_LIBRARY_PATH", (kBoth + "/no_dmabuf").c_str(), 1);
  const Record driver = bandwidth();
  ASSERT_EQ(driver.end.status, Status::complete) << driver.end.reason;
  EXPECT_NE(text_of(driver, "dma_buf_refused").find("has no cuMemGetHandleForAddressRange (CUDA 11.7)"),
            std::string::npos);
}

TEST_F(verbs_gpu, where_both_are_refused_nothing_is_measured_and_both_reasons_are_told) {
  setenv("ASSAY_FAKE_VERBS", "no_gpu_memory", 1);
  const Record record = bandwidth();
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_TRUE(record.measurements.empty());
  EXPECT_NE(record.end.reason.find(
                "as dma-buf: ibv_reg_dmabuf_mr: Operation not supported; through nvidia-peermem: ibv_reg_mr"),
            std::string::npos)
      << record.end.reason;
  EXPECT_NE(record.end.reason.find("modprobe nvidia-peermem"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_gpu, peermem_is_not_needed_where_dma_buf_works) {
  setenv("ASSAY_FAKE_VERBS", "no_peermem", 1);
  EXPECT_EQ(text_of(bandwidth(), "registration"), "dma_buf");
}

TEST_F(verbs_gpu, a_byte_that_changed_in_the_memory_of_a_gpu_or_on_the_way_is_a_mismatch) {
  setenv("ASSAY_FAKE_CUDA", "bit_flip", 1);
  for (const Record& record : {bandwidth(), latency()}) {
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_GT(sum_of(record, "mismatches"), 0);
  }
  unsetenv("ASSAY_FAKE_CUDA");
  setenv("ASSAY_FAKE_VERBS", "corrupt", 1);
  EXPECT_GT(sum_of(bandwidth(), "mismatches"), 0);
}

TEST_F(verbs_gpu, without_a_gpu_that_can_it_skips_and_does_not_measure_host_memory) {
  for (const auto& [fault, words] : {std::pair{"none", "shows no GPU"},
                                     {"stub", "stub and no driver"},
                                     {"old", "neither dma-buf nor GPUDirect RDMA"}}) {
    setenv("ASSAY_FAKE_CUDA", fault, 1);
    const Record record = bandwidth();
    EXPECT_EQ(record.end.status, Status::skip) << fault;
    EXPECT_NE(record.end.reason.find(words), std::string::npos) << record.end.reason;
    EXPECT_TRUE(record.measurements.empty());
  }
}

TEST_F(verbs_gpu, a_driver_that_lacks_a_function_is_a_skip_that_names_it) {
  setenv("ASSAY_LIBRARY_PATH", (kVerbs + ":" + build_file("tests/fakes/old_cuda")).c_str(), 1);
  const Record record = bandwidth();
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("has no function cuInit"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_gpu, a_driver_that_fails_is_an_error_in_its_words) {
  setenv("ASSAY_FAKE_CUDA", "broken", 1);
  EXPECT_EQ(bandwidth().end.reason, "cuInit: system not yet initialized (CUDA error 802)");
  setenv("ASSAY_FAKE_CUDA", "full", 1);
  const Record full = bandwidth();
  EXPECT_EQ(full.end.status, Status::error);
  EXPECT_NE(full.end.reason.find("on " + kNear + ": out of memory (CUDA error 2)"), std::string::npos)
      << full.end.reason;
}

TEST_F(verbs_gpu, a_gpu_for_host_memory_is_refused) {
  EXPECT_EQ(bandwidth({"--gpu", kNear}, "host").end.reason, "gpu: the memory is the host's; hint: --memory gpu");
}

TEST_F(verbs_gpu, host_memory_is_on_record_as_such) {
  const Record record = bandwidth({}, "host");
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(text_of(record, "memory"), "host");
  EXPECT_EQ(text_of(record, "registration"), "host");
  EXPECT_EQ(text_of(record, "gpu"), "");
}

}  // namespace assay::verbs
