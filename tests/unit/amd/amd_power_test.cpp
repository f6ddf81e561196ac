// The probes of power on nodes of made-up AMD GPUs: who is read, how often, against which limit, and under which load.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::amd::power_test {
namespace {

const Subject kFirst = {"gpu", "a1ff74a1-0000-1000-8000-000000000000"};
const Subject kSecond = {"gpu", "a1ff74a1-0000-1000-8000-000000000001"};

/// Two GPUs of 140 W, which differ by `smi`; no other instrument.
Record record_on(const std::string& smi, const std::string& probe, std::vector<std::string> arguments,
                 const std::string& libraries = build_file("tests/fakes/amd_26")) {
  setenv("ASSAY_FAKE_AMD_SMI", smi.c_str(), 1);
  setenv("ASSAY_LIBRARY_PATH", libraries.c_str(), 1);
  arguments.insert(arguments.end(), {"--nvml-library", "/no-such-nvml"});
  const Record record = record_of(probe_file(probe), std::move(arguments));
  for (const char* name : {"ASSAY_FAKE_AMD_SMI", "ASSAY_LIBRARY_PATH"}) unsetenv(name);
  return record;
}
Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

}  // namespace

TEST(amd_power, each_board_is_metered_and_a_partition_of_one_is_not_metered_again) {
  const FakeTree no_packages;
  const std::vector<std::string> arguments = {"--powercap", no_packages.path(), "--duration",
                                              "1s",         "--interval",       "200ms"};
  const Record two = record_on(R"({"count": 2})", "power_sampler", arguments);
  ASSERT_EQ(two.end.status, Status::complete) << two.end.reason;
  for (const Subject& gpu : {kFirst, kSecond}) {
    ASSERT_FALSE(samples_of(two, "power", gpu).empty());
    for (const double power_w : samples_of(two, "power", gpu)) EXPECT_NEAR(power_w, 140, 7);
    EXPECT_EQ(samples_of(two, "power_instant", gpu).at(0), 140);
  }
  EXPECT_EQ(value_of(two, "instrument", node_of(two)), Value(std::string("amd_smi")));
  EXPECT_EQ(value_of(two, "driver_version", node_of(two)), Value(std::string("simulated 6.12.12")));

  const Record parts =
      record_on(R"({"count": 2, "gpus": {"1": {"bus": 5, "function": 1}}})", "power_sampler", arguments);
  ASSERT_EQ(parts.end.status, Status::complete) << parts.end.reason;
  EXPECT_FALSE(samples_of(parts, "power", kFirst).empty());
  EXPECT_TRUE(samples_of(parts, "power", kSecond).empty());
}

TEST(amd_power, a_library_without_counters_of_energy_is_no_instrument) {
  const FakeTree no_packages;
  const Record record = record_on(R"({"gpu": {"energy": null}})", "power_sampler",
                                  {"--powercap", no_packages.path(), "--duration", "300ms"});
  EXPECT_EQ(record.end.status, Status::skip);
}

TEST(amd_power, a_gpu_over_its_limit_is_over_it_and_one_without_a_limit_is_named) {
  const FakeTree no_packages;
  const Record record = record_on(
      R"({"count": 2, "gpus": {"0": {"cap": [100000000, 750000000]}, "1": {"fails": {"cap": 2}}}})", "power_cap",
      {"--powercap", no_packages.path(), "--device", "/no-such-bmc", "--hold", "2s", "--ramp", "100ms", "--threads",
       "1"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "cap_w", kFirst), Value{100.0});
  EXPECT_EQ(value_of(record, "cap_source", kFirst), Value(std::string("AMD SMI")));
  EXPECT_EQ(value_of(record, "cap_reached", kFirst), Value{true});
  for (const double share : samples_of(record, "cap_share", kFirst)) EXPECT_GT(share, 1.3);
  const auto absent = value_of(record, "caps_absent", node_of(record));
  ASSERT_TRUE(absent);
  EXPECT_NE(std::get<std::string>(*absent).find(kSecond.id + " reports no limit"), std::string::npos)
      << std::get<std::string>(*absent);
}

TEST(amd_power, a_soak_watches_temperatures_and_clocks_of_gpus_and_the_power_of_all) {
  const FakeTree nothing;
  const Record record = record_on(R"({"count": 2})", "thermal_soak",
                                  {"--root", nothing.path(), "--engine", "none", "--window", "1s", "--hold", "1s",
                                   "--time-cap", "6s", "--interval", "50ms"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "gpus_watched", node_of(record)), Value{std::int64_t{2}});
  for (const Subject& gpu : {kFirst, kSecond}) {
    EXPECT_EQ(samples_of(record, "temperature", gpu).back(), 41);
    EXPECT_EQ(samples_of(record, "memory_temperature", gpu).back(), 35);
    EXPECT_EQ(samples_of(record, "clock", gpu).back(), 132e6);
  }
  EXPECT_EQ(value_of(record, "power_boundary", node_of(record)), Value(kFirst.id + ", " + kSecond.id));
}

namespace {

/// What a loaded node has that a watched one need not: a runtime with its products.
struct Loaded {
  std::string hip = "gpus=2 memory=592 slow=20";
  std::string smi = R"({"count": 2, "gpu": {"cache_kb": 64}})";
  std::vector<std::string> more = {};
};

/// Loads both GPUs by matrices of an order that a made-up GPU multiplies in milliseconds.
Record load_on(const Loaded& node, const std::string& probe, std::vector<std::string> arguments) {
  const FakeTree nothing;
  const std::string libraries = build_file("tests/fakes/amdhip") + ":" + build_file("tests/fakes/amd_26");
  setenv("ASSAY_FAKE_AMDHIP", node.hip.c_str(), 1);
  setenv("ASSAY_DEVICE_SECONDS", "2", 1);
  arguments.insert(arguments.end(), {"--order", "64", "--ramp", "500ms"});
  if (probe == "power_cap")
    arguments.insert(arguments.end(), {"--powercap", nothing.path(), "--device", "/no-such-bmc"});
  else
    arguments.insert(arguments.end(), {"--root", nothing.path()});
  arguments.insert(arguments.end(), node.more.begin(), node.more.end());
  const Record record = record_on(node.smi, probe, std::move(arguments), libraries);
  for (const char* name : {"ASSAY_FAKE_AMDHIP", "ASSAY_DEVICE_SECONDS"}) unsetenv(name);
  return record;
}
Record soak_on(const Loaded& node) {
  return load_on(node, "thermal_soak",
                 {"--engine", "job", "--window", "1s", "--hold", "1s", "--time-cap", "8s", "--interval", "50ms"});
}
const std::string kWords = "AMD Instinct MI300X (simulated), bf16, hipBLASLt 1.4.1";

}  // namespace

TEST(amd_load, a_soak_of_both_gpus_checks_all_that_they_do_and_says_how_they_are_divided) {
  const Record record =
      soak_on({.smi = R"({"count": 2, "gpu": {"cache_kb": 64, "compute": "DPX", "processes": [7]}})"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "engine", node_of(record)), Value(std::string("gpu_job")));
  for (const Subject& gpu : {kFirst, kSecond}) {
    EXPECT_EQ(samples_of(record, "mismatches", gpu), std::vector<double>{0});
    const std::map<std::string, Value> conditions = {{"gpu_load", kWords},
                                                     {"compute_partition", std::string("DPX")},
                                                     {"memory_partition", std::string("NPS1")},
                                                     {"amd_smi", std::string("present")},
                                                     {"ecc_uncorrected_delta", std::int64_t{0}},
                                                     {"thermal_violations_delta", std::int64_t{0}},
                                                     {"other_processes", std::int64_t{1}}};
    for (const auto& [name, value] : conditions) EXPECT_EQ(value_of(record, name, gpu), value) << name;
    for (const char* name : {"job_products", "job_copied_bytes", "walk_slices", "walk_words", "detects_wrong_rate"})
      EXPECT_GT(number_in(value_of(record, name, gpu).value()).value(), 0) << name;
  }
  EXPECT_GT(sum_of(record, "rate"), 0);
}

TEST(amd_load, each_fault_of_a_gpu_under_load_is_named) {
  struct Fault {
    std::string hip, smi, words;
    std::map<std::string, double> least = {};  ///< of a measurement or condition of the first GPU
    Status status = Status::complete;
  };
  const std::string healthy = R"({"count": 1, "gpu": {"cache_kb": 64}})";
  const std::vector<Fault> cases = {
      {"fault=wrong", healthy, "", {{"mismatches", 1}}},
      {"fault=varies", healthy, "", {{"mismatches", 1}}},
      {"fault=copy", healthy, "", {{"mismatches", 1}}},
      {"fault=stuck", healthy, "", {{"mismatches", 1}}},
      {"fault=flip after=150", healthy, "", {{"mismatches", 1}}},
      {"fault=none",
       R"({"count": 1, "gpu": {"cache_kb": 64, "grows": {"violations": [0, 0, 50, 0, 0], "total": [0, 5, 0]}}})",
       "",
       {{"thermal_violations_delta", 10}, {"ecc_uncorrected_delta", 1}}},
      {"fault=lost after=150",
       healthy,
       "unspecified launch failure (hipErrorLaunchFailure) of a1ff74a1-",
       {},
       Status::error},
      {"fault=hang after=150",
       healthy,
       "of a1ff74a1-0000-1000-8000-000000000000: the GPU is not done after 2 s and hangs",
       {},
       Status::error},
      {"fault=launch", healthy, "launching a kernel: unspecified launch failure", {}, Status::error},
      {"fault=all_refuse", healthy, "hipBLASLt: enqueueing a product", {}, Status::error},
      {"fault=none_for_type",
       healthy,
       "hipBLASLt 1.4.1 has no algorithm for bf16 with m, n and k 64 on a1ff74a1-",
       {},
       Status::skip}};
  for (const Fault& one : cases) {
    const Record record = soak_on({.hip = "gpus=1 memory=592 slow=20 " + one.hip, .smi = one.smi});
    ASSERT_EQ(record.end.status, one.status) << one.hip << ": " << record.end.reason;
    EXPECT_NE(record.end.reason.find(one.words), std::string::npos) << one.hip << ": " << record.end.reason;
    for (const auto& [name, least] : one.least) {
      const auto samples = samples_of(record, name, kFirst);
      const auto condition = value_of(record, name, kFirst);
      EXPECT_GE(!samples.empty() ? samples.at(0)
                : condition      ? number_in(*condition).value()
                                 : -1,
                least)
          << name << " with " << one.hip << one.smi;
    }
    const auto ended = value_of(record, "ended_by_mismatch_s", node_of(record));
    EXPECT_EQ(ended.has_value(), one.least.contains("mismatches")) << one.hip;
  }
}

TEST(amd_load, a_bank_and_a_cap_load_the_gpus_too) {
  const Record bank = load_on({}, "load_bank", {"--engine", "gpu", "--hold", "4s", "--grow-hold", "1s"});
  ASSERT_EQ(bank.end.status, Status::complete) << bank.end.reason;
  EXPECT_GT(samples_of(bank, "total_rate", node_of(bank)).at(0), 0);
  const Record cap = load_on({}, "power_cap", {"--engine", "gpu", "--hold", "2s"});
  ASSERT_EQ(cap.end.status, Status::complete) << cap.end.reason;
  EXPECT_FALSE(samples_of(cap, "cap_share", kFirst).empty());
  for (const Record* record : {&bank, &cap}) {
    EXPECT_EQ(value_of(*record, "engine", node_of(*record)), Value(std::string("gpu_gemm")));
    EXPECT_EQ(value_of(*record, "gpu_load", kSecond), Value(kWords));
    EXPECT_EQ(value_of(*record, "compute_partition", kSecond), Value(std::string("SPX")));
  }
}

TEST(amd_load, one_gpu_that_is_named_is_loaded_alone) {
  const Record record = load_on({.more = {"--gpus", kSecond.id}}, "power_cap", {"--engine", "gpu", "--hold", "1s"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "gpu_load", kFirst), std::nullopt);
  EXPECT_EQ(value_of(record, "gpu_load", kSecond), Value(kWords));
}

}  // namespace assay::amd::power_test
