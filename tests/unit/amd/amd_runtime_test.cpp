// The probes of AMD GPUs as processes over a made-up HIP runtime, which runs the kernels' text on the host, and made-up
// hipBLASLt and RCCL.
#include <gtest/gtest.h>

#include "tests/unit/amd/made_up_node.h"

namespace assay::amd::runtime_test {
namespace {

Record hbm_on(const Node& node) { return record_on(node, "amd_hbm_bandwidth", {"--size=1MiB", "--slice=1MiB"}); }
Record link_on(const Node& node) { return record_on(node, "amd_host_link", {"--size=1MiB"}); }
Record peers_on(const Node& node) { return record_on(node, "amd_peer_bandwidth", {"--size=1MiB"}); }
Record rccl_on(const Node& node, const std::string& operation = "all_reduce", const std::string& type = "fp32") {
  return record_on(node, "rccl_collective", {"--sizes=1000,70000", "--operation", operation, "--type", type});
}
/// Nodes of three GPUs, which links and collectives need.
Node three(const std::string& fault = "none", const std::string& smi = "{}") {
  return {.hip = "gpus=3 memory=64 fault=" + fault, .smi = smi == "{}" ? R"({"count": 3})" : smi};
}
/// Small products, whose sets pass the fake's small cache.
Record gemm_on(const std::string& hip, const std::string& type, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--type=" + type, "--m=16", "--n=16", "--k=128", "--sample-length=10ms", "--trials=1"});
  return record_on({.hip = "memory=259 slow=20 " + hip, .more = more}, "amd_gemm", {});
}

double mismatches(const Record& record) {
  const auto found = samples_of(record, "mismatches", kGpu);
  return found.empty() ? -1 : found.at(0);
}

}  // namespace

TEST(amd_hbm, every_kernel_and_every_pattern_run_on_two_gpus_together_and_nothing_is_wrong) {
  const Record record = hbm_on({.hip = "gpus=2 memory=259",
                                .smi = R"({"count": 2, "gpu": {"cache_kb": 64}})",
                                .more = {"--schedule", "together", "--passes", "1"}});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  for (const Subject& gpu : {kGpu, Subject{"gpu", "a1ff74a1-0000-1000-8000-000000000001"}}) {
    EXPECT_EQ(samples_of(record, "mismatches", gpu), std::vector<double>{0});
    for (const char* kernel : {"read", "write", "copy", "scale", "add", "triad", "dot"})
      EXPECT_FALSE(samples_of(record, std::string(kernel) + "_bandwidth", gpu).empty()) << kernel;
    const std::map<std::string, Value> conditions = {{"slices", std::int64_t{2}},
                                                     {"walk_patterns", std::int64_t{38}},
                                                     {"devices_at_once", std::int64_t{2}},
                                                     {"architecture", std::string("9.4")},
                                                     {"compute_partition", std::string("SPX")},
                                                     {"memory_partition", std::string("NPS1")},
                                                     {"driver_version", std::string("simulated 6.12.12")},
                                                     {"hip_version", std::string("7.0")},
                                                     {"last_cache_bytes", std::int64_t{65536}},
                                                     {"amd_smi", std::string("present")},
                                                     {"ecc_uncorrected_delta", std::int64_t{0}}};
    for (const auto& [name, value] : conditions) EXPECT_EQ(value_of(record, name, gpu), value) << name;
  }
}

TEST(amd_hbm, faults_that_the_probe_puts_into_its_slices_are_found_by_class) {
  const auto shares = [](const std::string& passes) {
    const Record record = hbm_on({.more = {"--passes", passes}});
    EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(mismatches(record), 0);
    const auto number = [&](const std::string& name) {
      return number_in(value_of(record, name, kGpu).value()).value();
    };
    for (const std::string fault : {"single_bit", "burst", "warp_aligned"}) {
      EXPECT_NEAR(number("detects_" + fault + "_high"), number("slice_coverage"), 1e-12) << fault;
      EXPECT_GT(number("detects_" + fault + "_low"), 0.98 * number("slice_coverage")) << fault;
      EXPECT_EQ(number("detects_" + fault + "_put"), 256) << fault;
    }
    EXPECT_EQ(number("detects_rare_stuck_put"), passes == "0" ? 80'000 : 4210);
    return number("detects_rare_stuck_low") / number("slice_coverage");
  };
  EXPECT_GT(shares("0"), 0);  // of thousands of rounds in an hour
  EXPECT_GT(shares("1"), 0.9);
}

TEST(amd_hbm, one_flipped_bit_is_found) {
  const Record record = hbm_on({.hip = "gpus=1 memory=259 fault=flip"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GE(mismatches(record), 1);
}

TEST(amd_hbm, a_stuck_bit_is_found_in_every_slice_and_named) {
  const Record record = hbm_on({.hip = "gpus=1 memory=259 fault=stuck"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GE(mismatches(record), 2);
  const auto places = value_of(record, "mismatch_places", kGpu);
  ASSERT_TRUE(places.has_value());
  EXPECT_NE(std::get<std::string>(*places).find("payload at 0x100268: "), std::string::npos)
      << std::get<std::string>(*places);
}

TEST(amd_host_link, both_directions_by_both_engines_arrive_whole) {
  const Record record = link_on({.smi = R"({"count": 1, "gpu": {"pcie": [8, 16000, 16, 5, 3]}})"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(mismatches(record), 0);
  for (const char* metric : {"h2d_bandwidth", "d2h_bandwidth", "h2d_bandwidth_sm", "d2h_bandwidth_sm",
                             "duplex_bandwidth", "latency", "h2d_bandwidth_pageable"})
    EXPECT_FALSE(samples_of(record, metric, kGpu).empty()) << metric;
  EXPECT_EQ(samples_of(record, "pcie_replays", kGpu), std::vector<double>{0});  // of the measurement, not since boot
}

TEST(amd_host_link, a_byte_that_does_not_arrive_is_found) {
  const Record record = link_on({.hip = "gpus=1 memory=259 fault=copy"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GE(mismatches(record), 1);
}

TEST(amd_host_link, a_counter_that_goes_back_has_no_growth) {
  const Record record = link_on({.smi = R"({"count": 1, "gpu": {"total": [1000000, 1000000000, 0],
      "grows": {"total": [1000000, -1000000, 0]}}})"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GT(number_in(value_of(record, "ecc_corrected_delta", kGpu).value()).value(), 0);
  EXPECT_EQ(value_of(record, "ecc_uncorrected_delta", kGpu), std::nullopt);
}

TEST(amd_gemm, every_type_is_right_on_the_architecture_that_has_it) {
  struct Type {
    std::string name, minor, encoding;
  };
  const std::vector<Type> cases = {{"fp8_e4m3", "4", "fnuz"}, {"fp8_e5m2", "4", "fnuz"}, {"fp8_e4m3", "5", "ocp"},
                                   {"fp8_e5m2", "5", "ocp"},  {"bf16", "0", ""},         {"bf16", "4", ""},
                                   {"fp16", "4", ""},         {"tf32", "4", ""},         {"fp32", "5", ""},
                                   {"fp64", "4", ""},         {"int8", "4", ""}};
  for (const Type& one : cases) {
    const Record record = gemm_on("gpus=1 minor=" + one.minor, one.name);
    ASSERT_EQ(record.end.status, Status::complete) << one.name << ": " << record.end.reason;
    for (const char* fault : {"mismatches", "whole_mismatches", "checksum_changes"})
      EXPECT_EQ(samples_of(record, fault, kGpu), std::vector<double>{0}) << fault << " of " << one.name;
    EXPECT_LT(samples_of(record, "largest_error_share", kGpu).at(0), 1) << one.name;
    for (const char* rate : {"throughput", "throughput_first", "throughput_best"})
      EXPECT_FALSE(samples_of(record, rate, kGpu).empty()) << rate << " of " << one.name;
    EXPECT_EQ(value_of(record, "fp8_encoding", node_of(record)).value_or(std::string()), Value(one.encoding))
        << one.name;
  }
}

TEST(amd_gemm, two_gpus_together_take_one_solution_that_is_named) {
  const Record record = record_on({.hip = "gpus=2 memory=259 slow=20",
                                   .smi = R"({"count": 2, "gpu": {"cache_kb": 64}})",
                                   .more = {"--schedule=together", "--m=16", "--n=16", "--k=64", "--trials=2",
                                            "--sample-length=10ms", "--type=bf16"}},
                                  "amd_gemm", {});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject other = {"gpu", "a1ff74a1-0000-1000-8000-000000000001"};
  EXPECT_EQ(value_of(record, "algorithm", kGpu), value_of(record, "algorithm", other));
  const std::map<std::string, Value> conditions = {{"algorithm_first", std::string("solution 7, workspace 0 B")},
                                                   {"algorithms_timed", std::int64_t{2}},
                                                   {"algorithms_refused", std::int64_t{0}},
                                                   {"architecture", std::string("9.4")},
                                                   {"amd_smi", std::string("present")}};
  for (const auto& [name, value] : conditions) EXPECT_EQ(value_of(record, name, kGpu), value) << name;
  EXPECT_EQ(value_of(record, "library_version", node_of(record)), Value(std::string("1.4.1")));
}

TEST(amd_gemm, each_fault_of_a_product_is_found_by_the_check_that_is_for_it) {
  struct Fault {
    std::string name, type, metric;
  };
  const std::vector<Fault> cases = {{"wrong", "bf16", "mismatches"},         {"line", "fp16", "mismatches"},
                                    {"not_a_number", "fp16", "mismatches"},  {"unwritten", "fp32", "mismatches"},
                                    {"unscaled", "fp8_e4m3", "mismatches"},  {"ocp", "fp8_e4m3", "mismatches"},
                                    {"ocp", "fp8_e5m2", "whole_mismatches"}, {"cut", "fp8_e4m3", "whole_mismatches"},
                                    {"cut", "int8", "mismatches"},           {"stuck_bit", "bf16", "whole_mismatches"},
                                    {"varies", "tf32", "checksum_changes"}};
  for (const Fault& one : cases) {
    const Record record = gemm_on("gpus=1 fault=" + one.name, one.type);
    ASSERT_EQ(record.end.status, Status::complete) << one.name << ": " << record.end.reason;
    EXPECT_GE(samples_of(record, one.metric, kGpu).at(0), 1) << one.name << " of " << one.type;
  }
}

TEST(amd_gemm, a_solution_that_does_not_run_is_left_out_and_counted) {
  const Record record = gemm_on("gpus=1 fault=refuses", "bf16");
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "algorithms_refused", kGpu), Value(std::int64_t{1}));
  EXPECT_EQ(value_of(record, "algorithm_first", kGpu), Value(std::string("solution 8, workspace 79691776 B")));
}

TEST(amd_hbm, without_amd_smi_the_cache_is_taken_to_be_large) {
  const Record record = hbm_on({.smi = R"({"init": 34})"});
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_NE(record.end.reason.find("is less than four times its second-level cache of 268.4 MB"), std::string::npos)
      << record.end.reason;
  EXPECT_NE(record.end.reason.find("GPU-a1ff74a100000000"), std::string::npos) << record.end.reason;
}

namespace {

/// A node, and what amd_peer_bandwidth says of a pair of it.
struct PairCase {
  Node node;
  std::string access, path;
  Value hops;
  bool is_right = true;
};

/// What is said of the node.
std::optional<Value> said(const Record& record, const std::string& name) {
  return value_of(record, name, {"node", std::get<std::string>(record.start.host.at("name"))});
}

}  // namespace

TEST(amd_peer, every_pair_is_measured_as_it_is_linked_and_a_byte_that_does_not_arrive_is_found) {
  const Subject pair = {"pair", "a1ff74a1-0000-1000-8000-000000000000>a1ff74a1-0000-1000-8000-000000000002"};
  const Value one = std::int64_t{1}, two = std::int64_t{2};
  Node bare = three("pcie");
  bare.folders = {"amdhip"};
  const std::vector<PairCase> cases = {
      {three(), "xgmi", "direct", one},
      {three("peer_copy"), "xgmi", "direct", one, false},
      {three("no_peer"), "none", "host", one},
      {three("none", R"({"count": 3, "gpu": {"link": [2, 1]}})"), "pcie", "direct", two},  // AMD SMI goes before
      {three("pcie", R"({"count": 3, "gpu": {"link": null}})"), "pcie", "direct", two},    // it has no answer
      {bare, "pcie", "direct", two}};
  for (const PairCase& at : cases) {
    const Record record = peers_on(at.node);
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(sum_of(record, "mismatches") == 0, at.is_right) << at.node.hip;
    if (at.node.folders.size() == 1) continue;  // GPUs have other names there
    EXPECT_EQ(value_of(record, "peer_access", pair), Value(at.access)) << at.node.hip;
    EXPECT_EQ(value_of(record, "path", pair), Value(at.path)) << at.node.hip;
    EXPECT_EQ(value_of(record, "link_hops", pair), at.hops) << at.node.hip;
    EXPECT_EQ(samples_of(record, "latency", pair).empty(), at.path == "host") << at.node.hip;
    EXPECT_FALSE(samples_of(record, "duplex_bandwidth", pair).empty());
    EXPECT_FALSE(samples_of(record, "all_pairs_bandwidth", kGpu).empty());
    EXPECT_EQ(said(record, "gpu_errors_delta"), Value(std::int64_t{0}));
  }
  EXPECT_EQ(peers_on({}).end.reason, "one GPU: there is no pair");
  const std::string reason = record_on(three(), "amd_peer_bandwidth", {"--size=32MiB"}).end.reason;
  EXPECT_NE(reason.find("size: 3 payloads of 33554432 B do not fit into the 67108864 B of "), std::string::npos)
      << reason;
  EXPECT_NE(reason.find("; the nearest that fits: 16777216"), std::string::npos) << reason;
}

TEST(rccl, every_operation_is_exact_over_three_ranks_and_says_what_it_ran_on) {
  for (const char* operation :
       {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "scatter", "send_recv"}) {
    const Record record = rccl_on(three(), operation);
    ASSERT_EQ(record.end.status, Status::complete) << operation << ": " << record.end.reason;
    EXPECT_EQ(sum_of(record, "mismatches"), 0) << operation;
    EXPECT_GT(sum_of(record, "busbw"), 0) << operation;
    const std::map<std::string, Value> conditions = {{"ranks", std::int64_t{3}},
                                                     {"rccl_version", std::string("2.26.6")},
                                                     {"transport", std::string("P2P/IPC")},
                                                     {"buffers", std::string("hipMalloc")},
                                                     {"launch_excluded", true},
                                                     {"gpu_errors_delta", std::int64_t{0}}};
    for (const auto& [name, value] : conditions) EXPECT_EQ(said(record, name), value) << name;
  }
  for (const char* type : {"fp64", "fp16", "bf16"})
    EXPECT_EQ(sum_of(rccl_on(three(), "all_reduce", type), "mismatches"), 0) << type;
  EXPECT_EQ(said(rccl_on(three()), "algorithm"), Value(std::string("RING")));
}

TEST(rccl, a_wrong_sum_is_counted) {
  for (const char* fault : {"wrong", "lost"}) {
    Node node = three();
    node.rccl = std::string("rank=2 fault=") + fault;
    const Record record = rccl_on(node);
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_GE(sum_of(record, "mismatches"), 2) << fault;
  }
}

/// A fault of the runtime, how the probe ends, and its words.
struct Failure {
  std::string hip;
  Status status;
  std::string words;
};

TEST(amd_hbm, what_fails_is_an_error_and_what_is_missing_a_skip) {
  const std::vector<Failure> cases = {
      {"fault=no_gpu", Status::skip, "the HIP runtime shows no GPU: a failure; hint: "},
      {"fault=compile", Status::error, "compiling the kernels (hiprtc 6): kernels:1:1: error: refused"},
      {"fault=launch", Status::error, "launching a kernel: unspecified launch failure (hipErrorLaunchFailure)"},
      {"gpus=1 memory=0", Status::error, "is less than four times"},
  };
  for (const Failure& one : cases) {
    const Record record = hbm_on({.hip = one.hip});
    EXPECT_EQ(record.end.status, one.status) << one.hip;
    EXPECT_NE(record.end.reason.find(one.words), std::string::npos) << record.end.reason;
  }
}

TEST(rccl, a_rank_that_fails_is_named_and_what_is_missing_a_skip) {
  const std::string second = "a1ff74a1-0000-1000-8000-000000000001";
  const std::vector<Failure> cases = {
      {"rank=1 fault=dies", Status::error, second + ") was killed by signal 9 before it answered, asked to "},
      {"rank=1 fault=refuses", Status::error,
       second + "): entering the communicator: unhandled system error: a word of RCCL"},
      {"rank=1 fault=hang", Status::error, " s and waits for others in the collective; hint: "},
      {"version=21700", Status::skip, "is older than 2.18"},
  };
  for (const Failure& one : cases) {
    Node node = three();
    node.rccl = one.hip;
    const Record record = rccl_on(node);
    EXPECT_EQ(record.end.status, one.status) << one.hip;
    EXPECT_NE(record.end.reason.find(one.words), std::string::npos) << record.end.reason;
  }
  Node node = three();
  node.folders = {"amdhip", "amd_26"};
  const Record record = rccl_on(node);
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("librccl.so.1 does not open"), std::string::npos) << record.end.reason;
  EXPECT_EQ(rccl_on({}).end.reason, "one GPU: a collective needs two ranks");
}

TEST(rccl, a_gpu_that_hangs_is_named_with_its_work_within_seconds_and_one_that_is_slow_passes) {
  setenv("ASSAY_DEVICE_SECONDS", "2", 1);
  Node node = three();
  node.hip += " fault=hang on=1 after=2";  // GPU 1 has done a check by then
  const Record hung = rccl_on(node);
  EXPECT_EQ(hung.end.status, Status::error);
  EXPECT_NE(hung.end.reason.find("a1ff74a1-0000-1000-8000-000000000001): "), std::string::npos) << hung.end.reason;
  EXPECT_NE(hung.end.reason.find(" s and hangs in its own work before the collective; hint: "), std::string::npos)
      << hung.end.reason;
  node = three();
  node.rccl = "rank=1 fault=slow";
  const Record slow = rccl_on(node);
  unsetenv("ASSAY_DEVICE_SECONDS");
  EXPECT_EQ(slow.end.status, Status::complete) << slow.end.reason;
  EXPECT_EQ(sum_of(slow, "mismatches"), 0);
}

TEST(amd_gemm, what_a_gpu_or_the_library_does_not_have_is_a_skip_and_what_fails_an_error) {
  struct Case {
    std::string hip, type;
    Status status;
    std::string words;
  };
  const std::vector<Case> cases = {
      {"minor=0", "fp8_e4m3", Status::skip, "architecture 9.0) has no instruction for it; MI300 (9.4) and later have"},
      {"minor=0", "tf32", Status::skip, "only MI300 (9.4) has, others emulate it"},
      {"minor=5", "tf32", Status::skip, "type tf32: a1ff74a1-0000-1000-8000-000000000000 ("},
      {"fault=none_for_type", "int8", Status::skip, "hipBLASLt 1.4.1 has no algorithm for type int8 with m 16"},
      {"fault=all_refuse", "bf16", Status::error,
       "hipBLASLt: enqueueing a product (solution 7, workspace 0 B): not supported (hipBLASLt 7)"},
      {"fault=launch", "bf16", Status::error, "launching a kernel: unspecified launch failure"},
  };
  for (const Case& one : cases) {
    const Record record = gemm_on("gpus=1 " + one.hip, one.type);
    EXPECT_EQ(record.end.status, one.status) << one.hip;
    EXPECT_NE(record.end.reason.find(one.words), std::string::npos) << record.end.reason;
  }
}

}  // namespace assay::amd::runtime_test
