// Every probe of AMD GPUs on nodes where something is missing, hidden, divided or lost: a skip with the remedy, a
// condition, or an error that names the GPU.
#include <filesystem>

#include <gtest/gtest.h>

#include "probes/core/filesystem_facts.h"
#include "tests/unit/amd/made_up_node.h"

namespace assay::amd::absent_test {
namespace {

/// A probe with the arguments of a short run. Those that load GPUs of any vendor have other parameters of sampling.
struct Probe {
  std::string name;
  std::vector<std::string> arguments = {};
  bool samples = true;
};
const std::vector<Probe> kMeasuring = {
    {"amd_hbm_bandwidth", {"--size=1MiB", "--slice=1MiB"}},
    {"amd_host_link", {"--size=1MiB"}},
    {"amd_peer_bandwidth", {"--size=1MiB"}},
    {"amd_gemm", {"--type=bf16", "--m=16", "--n=16", "--k=128", "--sample-length=10ms", "--trials=1"}},
    {"rccl_collective", {"--sizes=1000"}},
};
// Without power_cap and thermal_soak, which look for limits of power and for temperatures first.
const std::vector<Probe> kLoading = {{"load_bank", {"--engine=gpu"}, false}};
const std::vector<Probe> kAsking = {{"health_amd", {}, false}};

Record on(Node node, const Probe& probe) {
  if (!probe.samples) node.sampling = {};
  return record_on(node, probe.name, probe.arguments);
}

void expect_skips(const Node& node, const std::vector<Probe>& probes, const std::vector<std::string>& words) {
  for (const Probe& probe : probes) {
    const Record record = on(node, probe);
    EXPECT_EQ(record.end.status, Status::skip) << probe.name << ": " << record.end.reason;
    for (const std::string& one : words)
      EXPECT_NE(record.end.reason.find(one), std::string::npos)
          << probe.name << " without " << one << ": " << record.end.reason;
  }
}

using Links = std::map<std::string, std::string>;

/// A folder with made-up libraries under the names of other releases.
class ReleaseFolder {
 public:
  explicit ReleaseFolder(const Links& links) {
    for (const auto& [name, fake] : links)
      std::filesystem::create_symlink(build_file("tests/fakes/" + fake), scratch_.path() + "/" + name);
  }
  [[nodiscard]] Node node() const { return {.folders = {scratch_.path()}}; }

 private:
  ScratchDirectory scratch_{"/var/tmp"};
};

const std::string kInstall = "hint: install ";

}  // namespace

TEST(amd_absent, what_is_missing_is_a_skip_that_says_what_to_install) {
  if (std::filesystem::exists("/opt/rocm")) GTEST_SKIP() << "this machine has ROCm";
  const Node bare = {.folders = {"none"}};
  for (const auto& probes : {kMeasuring, kLoading})
    expect_skips(bare, probes,
                 {"libamdhip64.so.7, libamdhip64.so.6 does not open", kInstall, "it comes with ROCm 6.0 or newer"});
  expect_skips(bare, kAsking, {"libamd_smi.so.26 does not open", kInstall, "it comes with ROCm 7.0 or newer"});

  const ReleaseFolder five(
      {{"libamdhip64.so.5", "amdhip/libamdhip64.so.7"}, {"libamd_smi.so.24", "amd_25/libamd_smi.so.25"}});
  const std::string hip =
      "libamdhip64.so.5 is of an older ROCm: libamdhip64.so.7 or libamdhip64.so.6 of ROCm 6.0 or newer";
  for (const auto& probes : {kMeasuring, kLoading}) expect_skips(five.node(), probes, {hip, kInstall + "that too"});
  expect_skips(five.node(), kAsking,
               {"libamd_smi.so.24 is of an older ROCm: libamd_smi.so.26 of ROCm 7.0 or newer", kInstall + "that too"});

  const ReleaseFolder half(Links{{"libamdhip64.so.7", "amdhip/libamdhip64.so.7"}});
  for (const auto& probes : {kMeasuring, kLoading})
    expect_skips(half.node(), probes,
                 {"the compiler of the HIP runtime is not here: libhiprtc.so.7 does not open", kInstall});
}

TEST(amd_absent, a_gpu_that_cannot_be_reached_is_a_skip_with_a_hint) {
  for (const auto& probes : {kMeasuring, kLoading})
    expect_skips({.hip = "fault=no_gpu"}, probes, {"the HIP runtime shows no GPU: ", "; hint: "});
  for (const std::string status : {"34", "10"})
    expect_skips({.smi = R"({"init": )" + status + "}"}, kAsking,
                 {"finds no working driver: ", "(AMD SMI " + status + "); hint: "});
}

#ifdef HIP_OVER_CUDA  // this build has it
TEST(amd_absent, the_runtime_over_cuda_has_every_function_that_is_looked_up) {
  const std::string folder = build_file("lib/hip_over_cuda");
  for (const Probe& probe : {kMeasuring.at(0), kMeasuring.at(1)}) {
    const Record record = on({.folders = {folder}}, probe);
    if (record.end.status == Status::complete) continue;  // there is a GPU
    EXPECT_NE(record.end.reason.find("the HIP runtime shows no GPU: "), std::string::npos)
        << probe.name << ": " << record.end.reason;
  }
}
#endif

TEST(amd_absent, a_partitioned_gpu_is_named_by_its_modes_in_every_record) {
  const Node divided = {.hip = "gpus=3 memory=259 slow=20",
                        .smi = R"({"count": 3, "gpu": {"cache_kb": 64, "compute": "CPX", "memory_mode": "NPS4"}})"};
  for (const auto& probes : {kMeasuring, kAsking}) {
    for (const Probe& probe : probes) {
      const Record record = on(divided, probe);
      EXPECT_EQ(record.end.status, Status::complete) << probe.name << ": " << record.end.reason;
      EXPECT_EQ(value_of(record, "compute_partition", kGpu), Value(std::string("CPX"))) << probe.name;
      EXPECT_EQ(value_of(record, "memory_partition", kGpu), Value(std::string("NPS4"))) << probe.name;
    }
  }
}

TEST(amd_absent, a_lost_gpu_is_an_error_that_names_it) {
  const Node losing = {.hip = "gpus=3 memory=259 slow=20 fault=lost",
                       .smi = R"({"count": 3, "gpu": {"cache_kb": 64}})"};
  for (const Probe& probe : kMeasuring) {
    const Record record = on(losing, probe);
    EXPECT_EQ(record.end.status, Status::error) << probe.name;
    EXPECT_NE(record.end.reason.find("a1ff74a1-0000-1000-8000-00000000000"), std::string::npos)
        << probe.name << ": " << record.end.reason;
  }
}

TEST(amd_absent, without_the_amd_smi_that_is_read_the_record_says_so) {
  if (std::filesystem::exists("/opt/rocm")) GTEST_SKIP() << "this machine has ROCm";
  const Record older = on({.folders = {"amdhip", "amd_25"}}, kMeasuring.at(1));
  ASSERT_EQ(older.end.status, Status::complete) << older.end.reason;
  const auto smi = value_of(older, "amd_smi", {"gpu", "GPU-a1ff74a100000000"});
  ASSERT_TRUE(smi.has_value());
  EXPECT_NE(std::get<std::string>(*smi).find("older ROCm: libamd_smi.so.26 of ROCm 7.0 or newer is read; hint: "),
            std::string::npos)
      << std::get<std::string>(*smi);
}

}  // namespace assay::amd::absent_test
