// amd_hbm_bandwidth, amd_host_link and amd_gemm as processes over a made-up HIP runtime, which runs the kernels' text
// on the host; and that text as clang makes it for AMD GPUs.
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::amd::runtime_test {
namespace {

/// A node of one GPU, its caches small, or what `hip` and `smi` say.
struct Node {
  std::string hip = "gpus=1 memory=259";
  std::string smi = R"({"count": 1, "gpu": {"cache_kb": 64}})";
  std::vector<std::string> more = {};
};

Record record_on(const Node& node, const std::string& probe, std::vector<std::string> arguments) {
  setenv("ASSAY_FAKE_AMDHIP", node.hip.c_str(), 1);
  setenv("ASSAY_FAKE_AMD_SMI", node.smi.c_str(), 1);
  setenv("ASSAY_LIBRARY_PATH", (build_file("tests/fakes/amdhip") + ":" + build_file("tests/fakes/amd_26")).c_str(), 1);
  if (probe != "amd_gemm") arguments.emplace_back("--size=1MiB");
  for (const char* flag : {"--quick", "--min-samples=2", "--max-samples=2", "--warmup-limit=0s"})
    arguments.emplace_back(flag);
  arguments.insert(arguments.end(), node.more.begin(), node.more.end());
  const Record record = record_of(probe_file(probe), arguments);
  for (const char* name : {"ASSAY_FAKE_AMDHIP", "ASSAY_FAKE_AMD_SMI", "ASSAY_LIBRARY_PATH"}) unsetenv(name);
  return record;
}
Record hbm_on(const Node& node) { return record_on(node, "amd_hbm_bandwidth", {"--slice=1MiB"}); }
/// Small products, whose sets pass the fake's small cache.
Record gemm_on(const std::string& hip, const std::string& type, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--type=" + type, "--m=64", "--n=64", "--k=128", "--sample-length=10ms", "--trials=1"});
  return record_on({.hip = "memory=259 " + hip, .more = more}, "amd_gemm", {});
}
Record link_on(const Node& node) { return record_on(node, "amd_host_link", {}); }

Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

const Subject kGpu = {"gpu", "a1ff74a1-0000-1000-8000-000000000000"};

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
  const Record record = record_on({.hip = "gpus=2 memory=259",
                                   .smi = R"({"count": 2, "gpu": {"cache_kb": 64}})",
                                   .more = {"--schedule=together", "--m=64", "--n=64", "--k=64", "--trials=2",
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
      {"fault=none_for_type", "int8", Status::skip, "hipBLASLt 1.4.1 has no algorithm for type int8 with m 64"},
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

TEST(amd_hbm, a_node_without_the_runtime_is_a_skip_that_says_what_to_install) {
  if (std::filesystem::exists("/opt/rocm")) GTEST_SKIP() << "this machine has ROCm";
  const Record record = record_of(probe_file("amd_hbm_bandwidth"), {"--quick"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("libamdhip64.so.7, libamdhip64.so.6 does not open"), std::string::npos)
      << record.end.reason;
  EXPECT_NE(record.end.reason.find("it comes with ROCm 6.0 or newer"), std::string::npos) << record.end.reason;
}

namespace {

/// The assembly of the kernels' text for one architecture, as clang writes it; nothing where no clang can.
std::string assembly_for(const std::string& architecture) {
  const std::string command = "clang-19 -x hip --offload-device-only --offload-arch=" + architecture +
                              " -nogpulib -nogpuinc -nostdinc -std=c++20 -O3 -Wall -Wextra -Werror "
                              "-Wno-unused-function -S -o - " +
                              build_file("probes/amd/kernels.hip");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 65536> buffer = {};
  for (std::size_t n = 0; pipe && (n = fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    text.append(buffer.data(), n);
  return text;
}

}  // namespace

TEST(amd_kernels, clang_makes_every_kernel_for_each_architecture_without_a_spill) {
  if (std::system("clang-19 --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "clang-19 is not here: apt-get install clang-19";
  const std::set<std::string> wanted = {
      "assay_gemm_fill",   "assay_gemm_sum", "assay_whole_check", "assay_whole_fill", "assay_whole_halves",
      "assay_whole_terms", "assay_add",      "assay_check",       "assay_chase",      "assay_copy",
      "assay_dot",         "assay_fill",     "assay_hold",        "assay_right_dot",  "assay_right_sum",
      "assay_scale",       "assay_start",    "assay_sum",         "assay_walk"};
  for (const char* architecture : {"gfx942", "gfx90a"}) {
    const std::string text = assembly_for(architecture);
    EXPECT_NE(text.find(std::string("amdhsa--") + architecture), std::string::npos) << text.substr(0, 400);
    const std::regex kernel(
        R"(\.name: +(assay_\w+)[\s\S]*?\.sgpr_spill_count: +(\d+)[\s\S]*?\.vgpr_spill_count: +(\d+))");
    std::set<std::string> found;
    for (std::sregex_iterator one(text.begin(), text.end(), kernel), end; one != end; ++one) {
      found.insert((*one)[1]);
      EXPECT_EQ((*one)[3], "0") << (*one)[1] << " on " << architecture;
      // Scalars of a wave may go to lanes of a vector register where nothing is timed: operands are made once.
      if ((*one)[1] != "assay_gemm_fill" && (*one)[1] != "assay_whole_fill")
        EXPECT_EQ((*one)[2], "0") << (*one)[1] << " on " << architecture;
    }
    EXPECT_EQ(found, wanted) << architecture;
    // A thread moves 16 bytes at once, and the gate is held by the clock of constant rate.
    for (const char* instruction : {"global_load_dwordx4", "global_store_dwordx4", "s_memrealtime", "s_barrier"})
      EXPECT_NE(text.find(instruction), std::string::npos) << instruction << " on " << architecture;
  }
}

}  // namespace assay::amd::runtime_test
