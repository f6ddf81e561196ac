// health_amd as a process over a made-up libamd_smi.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "probes/amd/gpu_facts.h"
#include "probes/amd/rocm_library.h"
#include "tests/unit/amd/made_up_node.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::amd {
namespace {

using Samples = std::vector<double>;

std::string fake_smi(const std::string& number = "26") {
  return build_file("tests/fakes/amd_" + number + "/libamd_smi.so." + number);
}
/// The subject that the fake numbers `index`.
Subject gpu(int index) { return {"gpu", "a1ff74a1-0000-1000-8000-00000000000" + std::to_string(index)}; }

Record health_with(const std::string& differs, const std::string& library = fake_smi(),
                   const std::string& root = "/nonexistent", const std::string& limit = "30s") {
  setenv("ASSAY_FAKE_AMD_SMI", differs.c_str(), 1);
  const std::vector<std::string> arguments = {"--amd-smi-library", library, "--root", root, "--answer-limit", limit};
  const Record record = record_of(probe_file("health_amd"), arguments);
  unsetenv("ASSAY_FAKE_AMD_SMI");
  return record;
}
/// A node of which GPU 3 differs.
std::string third(const std::string& differs) { return R"({"gpus": {"3": )" + differs + "}}"; }

Samples of_block(const Record& record, const std::string& metric, const std::string& block, const Subject& subject) {
  for (const Measurement& one : record.measurements) {
    if (one.metric == metric && one.subject == subject && one.at.at("block") == Value{block}) return one.samples;
  }
  return {};
}

}  // namespace

TEST(amd_facts, rates_of_pcie_have_a_generation_and_other_rates_none) {
  EXPECT_EQ(pcie_generation(2500), 1);
  EXPECT_EQ(pcie_generation(32000), 5);
  EXPECT_EQ(pcie_generation(64000), 6);
  EXPECT_EQ(pcie_generation(32), std::nullopt);
  EXPECT_EQ(pcie_generation(0), std::nullopt);
}

TEST(amd_facts, an_address_has_domain_bus_device_and_function) {
  EXPECT_EQ(pci_address_of(0x0002'c5'2bULL), "0002:c5:05.3");
}

TEST(amd_facts, what_keeps_a_gpu_out_of_reach_is_a_hint) {
  const FakeTree tree;
  EXPECT_EQ(reach_hint(tree.path()), "hint: load the driver amdgpu, or run where the GPUs are");
  tree.file("sys/module/amdgpu/version", "6.12.12\n");
  EXPECT_EQ(reach_hint(tree.path()),
            "hint: give the container /dev/kfd and /dev/dri (--device=/dev/kfd --device=/dev/dri)");
  tree.file("dev/kfd/is/no/device", "");
  EXPECT_EQ(reach_hint(tree.path()),
            "hint: /dev/kfd does not open (Is a directory): add the user to the groups video and render, or allow the "
            "container its devices");
  const FakeTree open;
  open.file("sys/module/amdgpu/version", "6.12.12\n");
  open.file("dev/kfd", "");
  EXPECT_EQ(reach_hint(open.path()), "hint: /dev/kfd opens: see the lines of amdgpu in the kernel's log (dmesg)");
  setenv("HIP_VISIBLE_DEVICES", "-1", 1);
  EXPECT_EQ(reach_hint(open.path()), "hint: HIP_VISIBLE_DEVICES is '-1': unset it");
  unsetenv("HIP_VISIBLE_DEVICES");
}

TEST(health_amd, a_healthy_node_tells_everything_of_eight_gpus) {
  const Record record = health_with("{}");
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "gpus", node_of(record)), Samples{8});
  EXPECT_EQ(value_of(record, "driver_version", node_of(record)), Value{std::string("simulated 6.12.12")});
  EXPECT_EQ(value_of(record, "amd_smi_version", node_of(record)), Value{std::string("26.1.0")});
  const std::map<std::string, Value> conditions = {
      {"model", std::string("AMD Instinct MI300X OAM")},
      {"serial", std::string("692346000007")},
      {"part", std::string("102-G30211-0C")},
      {"vbios", std::string("022.040.003.042.000001")},
      {"firmware", std::string("1: 0x556400, 9: 0x42")},
      {"pci_address", std::string("0000:75:00.0")},
      {"compute_partition", std::string("SPX")},
      {"memory_partition", std::string("NPS1")},
      {"ecc_mode", true},
      {"xgmi_states", std::string("0 up, 1 up, 2 up, 3 up, 4 up, 5 up, 6 up, 7 disabled")},
      {"power_limit_w", 750.0},
      {"power_w", 140.0},
      {"gfx_clock_max_hz", 2.1e9},
      {"temperature_c", 41.0},
      {"compute_units", std::int64_t{304}}};
  for (const auto& [name, value] : conditions) EXPECT_EQ(value_of(record, name, gpu(7)), value) << name;
  const std::map<std::string, double> metrics = {
      {"ecc_corrected", 0},   {"ecc_uncorrected", 0},    {"retired_pages_failed", 0}, {"xgmi_links_up", 7},
      {"xgmi_links_down", 0}, {"xgmi_errors", 0},        {"pcie_generation", 5},      {"pcie_generation_max", 5},
      {"pcie_width", 16},     {"thermal_violations", 0}, {"power_limit_lowered", 0},  {"query_errors", 0},
      {"facts_missing", 0}};
  for (const auto& [name, value] : metrics) EXPECT_EQ(samples_of(record, name, gpu(7)), Samples{value}) << name;
  EXPECT_EQ(of_block(record, "block_uncorrected", "umc", gpu(7)), Samples{0});
  EXPECT_EQ(of_block(record, "block_corrected", "hdp", gpu(7)), Samples{});  // is not guarded
}

/// A fault of GPU 3, and the metric that shows it there.
struct Fault {
  std::string differs, metric;
  double value = 0, healthy = 0;
};

TEST(health_amd, each_fault_is_a_number_on_its_gpu_and_on_no_other) {
  const std::vector<Fault> faults = {
      {R"({"total": [212, 0, 0]})", "ecc_corrected", 212},
      {R"({"total": [0, 3, 0]})", "ecc_uncorrected", 3},
      {R"({"total": [0, 0, 2]})", "ecc_deferred", 2},
      {R"({"pages": [0, 0]})", "retired_pages", 2},
      {R"({"pages": [1]})", "retired_pages_pending", 1},
      {R"({"pages": [2]})", "retired_pages_failed", 1},
      {R"({"links": [1, 0, 1, 1, 1, 1, 1, 2]})", "xgmi_links_down", 1},
      {R"({"links": [1, 0, 1, 1, 1, 1, 1, 2]})", "xgmi_links_up", 6, 7},
      {R"({"xgmi_state": 2})", "xgmi_errors", 1},
      {R"({"pcie": [16, 16000, 16, 5, 0]})", "pcie_generation", 4, 5},
      {R"({"pcie": [8, 32000, 16, 5, 0]})", "pcie_width", 8, 16},
      {R"({"pcie": [16, 32000, 16, 5, 44]})", "pcie_replays", 44},
      {R"({"violations": [0, 0, 7, 0, 2]})", "thermal_violations", 9},
      {R"({"violations": [0, 5, 0, 0, 0]})", "power_violations", 5},
      {R"({"cap": [500000000, 750000000]})", "power_limit_lowered", 1},
      {R"({"fails": {"total": 12}})", "query_errors", 1},
      {R"({"fails": {"links": 2}})", "facts_missing", 2},
  };
  for (const Fault& one : faults) {
    const Record record = health_with(third(one.differs));
    ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(samples_of(record, one.metric, gpu(3)), Samples{one.value}) << one.metric;
    for (const int other : {0, 2, 4, 7}) EXPECT_EQ(samples_of(record, one.metric, gpu(other)), Samples{one.healthy});
  }
}

TEST(health_amd, errors_are_counted_by_the_block_that_had_them) {
  const Record record = health_with(third(R"({"umc": [12, 0, 0], "gfx": [0, 1, 0], "fails": {"sdma": 2}})"));
  EXPECT_EQ(of_block(record, "block_corrected", "umc", gpu(3)), Samples{12});
  EXPECT_EQ(of_block(record, "block_uncorrected", "gfx", gpu(3)), Samples{1});
  EXPECT_EQ(of_block(record, "block_uncorrected", "gfx", gpu(2)), Samples{0});
  EXPECT_EQ(of_block(record, "block_corrected", "sdma", gpu(3)), Samples{});  // not supported, and no error
  EXPECT_EQ(samples_of(record, "query_errors", gpu(3)), Samples{0});
}

TEST(health_amd, a_partitioned_gpu_is_named_by_its_modes) {
  const Record record = health_with(R"({"gpu": {"compute": "CPX", "memory_mode": "NPS4", "units": 38}})");
  EXPECT_EQ(value_of(record, "compute_partition", gpu(0)), Value{std::string("CPX")});
  EXPECT_EQ(value_of(record, "memory_partition", gpu(0)), Value{std::string("NPS4")});
  EXPECT_EQ(value_of(record, "compute_units", gpu(0)), Value{std::int64_t{38}});
}

TEST(health_amd, a_lost_gpu_is_not_among_those_that_answer) {
  const Record record = health_with(third(R"({"lost": true})"));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject lost = {"gpu", "index-3"};
  EXPECT_EQ(samples_of(record, "gpus", node_of(record)), Samples{7});
  EXPECT_EQ(value_of(record, "gpus_listed", node_of(record)), Value{std::int64_t{8}});
  EXPECT_GT(samples_of(record, "query_errors", lost).at(0), 10);
  EXPECT_EQ(value_of(record, "query_error", lost),
            Value{std::string("uuid: AMDSMI_STATUS_IO: I/O Error (AMD SMI 12)")});
}

TEST(health_amd, a_driver_that_never_answers_ends_the_probe_with_the_gpu_and_the_question) {
  const Record record = health_with(third(R"({"hangs": "pages"})"), fake_smi(), "/nonexistent", "1s");
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_EQ(record.end.reason.find(gpu(3).id + ": bad_pages: no answer for 1 s, the driver hangs; hint: "), 0U)
      << record.end.reason;
}

TEST(health_amd, a_number_that_the_library_marks_as_none_is_left_out) {
  const Record record = health_with(
      R"({"gpu": {"total": [18446744073709551615, 0, 0], "pcie": [65535, 4294967295, 16, 0, 18446744073709551615],
          "violations": [18446744073709551615, 0, 18446744073709551615, 18446744073709551615, 18446744073709551615],
          "power": 65535, "cap": [18446744073709551615, 750000000]}})");
  for (const char* metric : {"ecc_corrected", "pcie_width", "pcie_generation", "pcie_generation_max", "pcie_replays",
                             "thermal_violations", "power_limit_lowered"})
    EXPECT_EQ(count_of(record, metric), 0U) << metric;
  EXPECT_EQ(value_of(record, "power_w", gpu(0)), std::nullopt);
  EXPECT_EQ(samples_of(record, "ecc_uncorrected", gpu(0)), Samples{0});
}

TEST(health_amd, errors_of_the_pcie_link_are_counted_by_class) {
  const FakeTree tree;
  tree.file("sys/bus/pci/devices/0000:35:00.0/aer_dev_fatal", "SDES 2\nTOTAL_ERR_FATAL 2\n");
  const Record record = health_with("{}", fake_smi(), tree.path());
  EXPECT_EQ(samples_of(record, "pcie_errors_fatal", gpu(3)), Samples{2});
  EXPECT_EQ(samples_of(record, "pcie_errors_fatal", gpu(2)), Samples{});
}

/// A way in which a node has no AMD SMI that can be read, and what the skip says.
struct Absent {
  std::string differs, library, words;
};

TEST(health_amd, what_is_missing_is_a_skip_that_says_what_to_do) {
  const std::vector<Absent> cases = {
      {"{}", "libamd_smi_absent.so", "name its folder in ASSAY_LIBRARY_PATH"},
      {R"({"version": [25, 5, 1]})", fake_smi(), "is version 25, this probe needs version 26"},
      {R"({"init": 34})", fake_smi(), "finds no working driver: AMDSMI_STATUS_DRIVER_NOT_LOADED (AMD SMI 34); hint: "},
  };
  for (const Absent& one : cases) {
    const Record record = health_with(one.differs, one.library);
    EXPECT_EQ(record.end.status, Status::skip) << one.words;
    EXPECT_NE(record.end.reason.find(one.words), std::string::npos) << record.end.reason;
  }
}

TEST(health_amd, without_any_rocm_the_usual_place_and_the_version_are_named) {
  if (std::filesystem::exists("/opt/rocm")) GTEST_SKIP() << "this machine has ROCm";
  const Record record = record_of(probe_file("health_amd"), {});
  EXPECT_EQ(record.end.status, Status::skip);
  for (const char* words : {"libamd_smi.so.26 does not open", "/opt/rocm/lib", "it comes with ROCm 7.0 or newer"})
    EXPECT_NE(record.end.reason.find(words), std::string::npos) << record.end.reason;
}

TEST(health_amd, an_older_rocm_is_named_with_the_version_that_is_read) {
  const std::string folder = build_file("tests/fakes/amd_25");
  setenv("ASSAY_LIBRARY_PATH", folder.c_str(), 1);
  const Record record = record_of(probe_file("health_amd"), {});
  unsetenv("ASSAY_LIBRARY_PATH");
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(
      record.end.reason.find("amd_25/libamd_smi.so.25 is of an older ROCm: libamd_smi.so.26 of ROCm 7.0 or newer"),
      std::string::npos)
      << record.end.reason;
}

}  // namespace assay::amd
