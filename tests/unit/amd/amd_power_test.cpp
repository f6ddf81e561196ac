// The probes of power on nodes of made-up AMD GPUs: who is read, how often, and against which limit.
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
Record record_on(const std::string& smi, const std::string& probe, std::vector<std::string> arguments) {
  setenv("ASSAY_FAKE_AMD_SMI", smi.c_str(), 1);
  setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/amd_26").c_str(), 1);
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

}  // namespace assay::amd::power_test
