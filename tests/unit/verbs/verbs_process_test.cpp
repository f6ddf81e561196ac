// The verbs probes as processes on a made-up machine with a fake libibverbs: both ranks of a loopback, and what is
// refused.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"
#include "tests/unit/verbs/verbs_tree.h"

namespace assay::verbs {
namespace {

/// A machine with one port of the fake library.
class verbs_process : public testing::Test {
 protected:
  verbs_process() {
    add_port(tree_, {.device = "fake0"});
    tree_.file("sys/class/infiniband/fake0/ports/1/hw_counters/out_of_sequence", "2\n");
    setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/verbs").c_str(), 1);
    unsetenv("ASSAY_FAKE_VERBS");
  }
  static void fault(const std::string& name) { setenv("ASSAY_FAKE_VERBS", name.c_str(), 1); }
  [[nodiscard]] std::vector<std::string> with(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--root", tree_.path()});
    return more;
  }
  [[nodiscard]] Record bandwidth(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--path", "loopback", "--sizes", "2,64KiB", "--min-samples", "6", "--window", "2ms",
                               "--warmup-limit", "10ms", "--time-limit", "50ms"});
    return record_of(probe_file("verbs_bandwidth"), with(more));
  }
  [[nodiscard]] Record latency(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"--path", "loopback", "--sizes", "2,4KiB", "--messages", "20", "--batches", "10", "--warmup", "5"});
    return record_of(probe_file("verbs_latency"), with(more));
  }

  [[nodiscard]] Record traffic(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--path", "loopback", "--size", "4KiB", "--buffer", "64KiB", "--window", "10ms",
                               "--warmup", "1", "--windows", "3"});
    return record_of(probe_file("verbs_traffic"), with(more));
  }

  FakeTree tree_;
  const Subject port_{"nic", "fake0/1"};
};

Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

}  // namespace

TEST_F(verbs_process, a_loopback_is_a_metric_of_its_own_and_verified) {
  for (const std::string operation : {"write", "read", "send"}) {
    const Record record = bandwidth({"--operation", operation, "--qps", "3"});
    ASSERT_EQ(record.end.status, Status::complete) << operation << ": " << record.end.reason;
    EXPECT_EQ(count_of(record, "loopback_bandwidth"), 2U);
    EXPECT_EQ(count_of(record, "bandwidth_forward"), 0U);
    EXPECT_GT(sum_of(record, "loopback_bandwidth"), 0);
    EXPECT_EQ(count_of(record, "mismatches"), 2U);
    EXPECT_EQ(sum_of(record, "mismatches"), 0) << operation;
  }
}

TEST_F(verbs_process, the_record_tells_path_port_and_counters) {
  const Record record = bandwidth({"--traffic-class", "106"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node = node_of(record);
  EXPECT_EQ(value_of(record, "path", node), Value{std::string("loopback")});
  EXPECT_EQ(value_of(record, "transport", node), Value{std::string("RoCE v2")});
  EXPECT_EQ(value_of(record, "gid", node), Value{std::string("10.9.0.1")});
  EXPECT_EQ(value_of(record, "gid_index", node), Value{std::int64_t{3}});
  EXPECT_EQ(value_of(record, "mtu", node), Value{std::int64_t{4096}});
  EXPECT_EQ(value_of(record, "traffic_class", node), Value{std::int64_t{106}});
  EXPECT_EQ(value_of(record, "port_rate", node), Value{5e10});
  EXPECT_EQ(value_of(record, "peer", node), Value{node.id + " fake0/1 10.9.0.1"});
  EXPECT_EQ(value_of(record, "retransmits", node), Value{std::int64_t{0}});
  EXPECT_EQ(value_of(record, "counters_before", node), Value{std::string("out_of_sequence=2")});
  EXPECT_EQ(value_of(record, "counters_changed", node), Value{std::string("none")});
  EXPECT_FALSE(value_of(record, "discards", node)) << "a counter that the port does not have became a number";
  EXPECT_EQ(value_of(record, "port_unchanged", node), Value{true});
  EXPECT_EQ(value_of(record, "completion_timestamps", node), Value{false});
}

TEST_F(verbs_process, a_corrupt_byte_is_a_mismatch_and_no_error) {
  fault("corrupt");
  for (const Record& record : {bandwidth({"--operation", "send"}), latency()}) {
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_GT(sum_of(record, "mismatches"), 0);
  }
}

TEST_F(verbs_process, every_sample_of_every_message_is_kept_and_the_largest_is_among_them) {
  for (const std::string operation : {"write", "read", "send"}) {
    const Record record = latency({"--operation", operation});
    ASSERT_EQ(record.end.status, Status::complete) << operation << ": " << record.end.reason;
    EXPECT_EQ(sum_of(record, "mismatches"), 0) << operation;
    const auto samples = samples_of(record, "latency", port_);
    const auto largest = samples_of(record, "latency_max", port_);
    ASSERT_EQ(samples.size(), 200U);
    ASSERT_EQ(largest.size(), 10U);
    EXPECT_EQ(*std::ranges::max_element(samples), *std::ranges::max_element(largest));
    EXPECT_EQ(samples_of(record, "latency_p999", port_).size(), 10U);
  }
}

TEST_F(verbs_process, messages_that_never_complete_end_at_the_stall_limit) {
  fault("lose");
  const Record stream = bandwidth({"--stall-limit", "300ms"});
  EXPECT_EQ(stream.end.status, Status::error);
  EXPECT_NE(stream.end.reason.find("no message was completed for 0.3 s"), std::string::npos) << stream.end.reason;
  const Record single = latency({"--stall-limit", "300ms"});
  EXPECT_EQ(single.end.status, Status::error);
  EXPECT_NE(single.end.reason.find("did not arrive within 0.3 s"), std::string::npos) << single.end.reason;
}

TEST_F(verbs_process, a_message_that_ends_in_an_error_is_told_with_its_queue_pair) {
  fault("fail");
  const Record record = bandwidth();
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_NE(record.end.reason.find("fake0/1: a message on queue pair"), std::string::npos) << record.end.reason;
  EXPECT_NE(record.end.reason.find("transport retry counter exceeded"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_process, queues_that_the_device_does_not_have_are_an_error_with_a_hint) {
  fault("small");
  const Record record = bandwidth();
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_NE(record.end.reason.find("lower depth"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_process, a_device_that_may_not_be_opened_is_a_skip) {
  fault("locked");
  EXPECT_EQ(bandwidth().end.status, Status::skip);
}

TEST_F(verbs_process, too_little_lockable_memory_is_an_error_with_a_hint) {
  fault("locked_memory");
  EXPECT_NE(bandwidth().end.reason.find("ulimit -l"), std::string::npos);
}

TEST_F(verbs_process, a_device_that_the_library_does_not_list_is_a_skip) {
  const FakeTree other;
  add_port(other, {.device = "mlx5_0"});
  const Record record = record_of(probe_file("verbs_bandwidth"), {"--root", other.path(), "--path", "loopback"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("does not list it"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_process, one_rank_alone_measures_no_fabric) {
  const Record record = record_of(probe_file("verbs_bandwidth"), with({}));
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("between two machines"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_process, two_ranks_on_one_machine_are_an_error) {
  const std::string token = "00112233445566778899aabbccddeeff";
  const std::string at = "127.0.0.1:" + std::to_string(20000 + getpid() % 10000);
  // A device has another name on every node; that is no difference.
  const auto rank = [&](const std::string& number, const std::string& device) {
    return record_of(probe_file("verbs_bandwidth"), with({"--rank", number, "--world", "2", "--rendezvous", at,
                                                          "--token", token, "--device", device}));
  };
  Record second;
  std::thread other([&] { second = rank("1", "fake0/1"); });
  const Record first = rank("0", "fake0");
  other.join();
  for (const Record* record : {&first, static_cast<const Record*>(&second)}) {
    EXPECT_EQ(record->end.status, Status::error);
    EXPECT_NE(record->end.reason.find("both ranks are on one machine"), std::string::npos) << record->end.reason;
    EXPECT_TRUE(record->measurements.empty());
  }
}

TEST_F(verbs_process, without_an_adapter_every_probe_skips_with_the_reason) {
  const FakeTree bare;
  for (const auto& probe : {probe_file("verbs_bandwidth"), probe_file("verbs_latency"), probe_file("verbs_traffic"),
                            probe_file("verbs_port")}) {
    const ProbeOutput output = run_probe({probe, "--root", bare.path()});
    EXPECT_EQ(output.exit_code, 77);
    EXPECT_NE(output.out.find("no RDMA device"), std::string::npos);
  }
}

TEST_F(verbs_process, a_library_that_lacks_a_function_is_a_skip_that_names_it) {
  setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/old_verbs").c_str(), 1);
  const Record record = bandwidth();
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("has no function ibv_"), std::string::npos) << record.end.reason;
}

TEST_F(verbs_process, parameters_out_of_range_are_errors_that_say_the_range) {
  EXPECT_EQ(bandwidth({"--qps", "17"}).end.reason, "qps: 17 is not from 1 to 16");
  EXPECT_EQ(bandwidth({"--depth", "1"}).end.reason, "depth: 1 is not from 2 to 1024");
  EXPECT_EQ(bandwidth({"--traffic-class", "256"}).end.reason, "traffic_class: 256 is not from 0 to 255");
  EXPECT_EQ(record_of(probe_file("verbs_latency"), {"--messages", "0"}).end.reason,
            "messages: 0 in 10 batches are not from 1 to 200000 samples");
  EXPECT_NE(record_of(probe_file("verbs_bandwidth"), {"--sizes", "1"}).end.reason.find("2 B to 64 MiB"),
            std::string::npos);
}

TEST_F(verbs_process, a_node_tells_its_ports) {
  const Record record = record_of(probe_file("verbs_port"), with({}));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "ports_active", node_of(record)), std::vector<double>{1});
  EXPECT_EQ(samples_of(record, "port_rate", port_), std::vector<double>{5e10});
  EXPECT_EQ(samples_of(record, "counter", port_), std::vector<double>{2});
  EXPECT_EQ(value_of(record, "port_state", port_), Value{std::string("ACTIVE")});
}

TEST_F(verbs_process, traffic_measures_every_flow_alone_and_with_all_others_and_compares_every_byte) {
  struct Case {
    std::string pattern, ranks;
    std::size_t flows;
    std::int64_t idle;
  };
  for (const auto& [pattern, ranks, flows, idle] :
       {Case{"permutation", "3", 3, 0}, {"bisection", "5", 4, 1}, {"incast", "4", 3, 0}}) {
    const Record record = traffic({"--pattern", pattern, "--loopback-ranks", ranks, "--qps", "2"});
    ASSERT_EQ(record.end.status, Status::complete) << pattern << ": " << record.end.reason;
    EXPECT_EQ(count_of(record, "loopback_alone"), flows) << pattern;
    EXPECT_EQ(count_of(record, "loopback_together"), flows) << pattern;
    EXPECT_EQ(count_of(record, "together_bandwidth"), 0U) << "a loopback is no fabric";
    EXPECT_GT(sum_of(record, "loopback_together"), 0) << pattern;
    EXPECT_EQ(samples_of(record, "mismatches", {"group", "all flows"}), std::vector<double>{0}) << pattern;
    EXPECT_EQ(value_of(record, "flows_at_once", node_of(record)), Value{static_cast<std::int64_t>(flows)});
    EXPECT_EQ(value_of(record, "idle_ranks", node_of(record)), Value{idle});
  }
}

TEST_F(verbs_process, traffic_names_its_flows_and_tells_where_a_rank_sends_to) {
  const Record record = traffic({"--pattern", "permutation", "--loopback-ranks", "2"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const std::string host = node_of(record).id;
  EXPECT_EQ(samples_of(record, "loopback_alone", {"pair", host + "#0>" + host + "#1"}).size(), 3U);
  EXPECT_EQ(value_of(record, "sends_to", node_of(record)), Value{host + " fake0/1 10.9.0.1"});
  EXPECT_EQ(value_of(record, "qps", node_of(record)), Value{std::int64_t{4}});
  EXPECT_EQ(value_of(record, "ack_timeout_s", node_of(record)), Value{0.067108864});
  EXPECT_EQ(value_of(record, "retransmits", node_of(record)), Value{std::int64_t{0}});
}

TEST_F(verbs_process, traffic_with_a_corrupt_byte_is_a_mismatch_and_without_completions_an_error) {
  fault("corrupt");
  const Record corrupt = traffic();
  ASSERT_EQ(corrupt.end.status, Status::complete) << corrupt.end.reason;
  EXPECT_GT(sum_of(corrupt, "mismatches"), 0);
  fault("lose");
  const Record lost = traffic({"--stall-limit", "300ms"});
  EXPECT_EQ(lost.end.status, Status::error);
  EXPECT_NE(lost.end.reason.find("no message was completed for 0.3 s"), std::string::npos) << lost.end.reason;
  EXPECT_TRUE(lost.measurements.empty());
}

TEST_F(verbs_process, traffic_of_one_machine_is_no_fabric_and_its_parameters_have_ranges) {
  EXPECT_EQ(record_of(probe_file("verbs_traffic"), with({})).end.status, Status::skip);
  EXPECT_EQ(traffic({"--loopback-ranks", "1"}).end.reason, "loopback_ranks: 1 is not from 2 to 16");
  EXPECT_EQ(traffic({"--shift", "0"}).end.reason, "shift: 0 is not from 1 to 1000000");
  EXPECT_EQ(record_of(probe_file("verbs_traffic"), with({"--size", "1"})).end.reason,
            "size: 1 B is not from 2 B to 64 MiB");
  EXPECT_EQ(traffic({"--ack-timeout", "20s"}).end.reason,
            "ack_timeout: 20 s is more than the 17.1799 s that a queue pair waits at most");
}

}  // namespace assay::verbs
