// load_bank as a process of one rank: what its record says of the load, and what it says where GPUs cannot be loaded.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "probes/power/load_report.h"
#include "tests/unit/fake_nvml.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::power {
namespace {

std::vector<std::string> short_load(std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"--hold", "4s", "--ramp", "500ms", "--grow-hold", "1s"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

TEST(load_bank, a_load_of_processors_says_what_multiplies) {
  const Record record = record_of(probe_file("load_bank"), short_load({"--threads", "2", "--shape", "soak"}));
  if (record.end.status == Status::skip) GTEST_SKIP() << record.end.reason;
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "engine", node_of(record)), Value{std::string("cpu_gemm")});
  EXPECT_EQ(value_of(record, "threads", node_of(record)), Value{std::int64_t{2}});
  EXPECT_FALSE(samples_of(record, "total_rate", node_of(record)).empty());
}

// A square wave of all ranks is what makes supplies and regulators fail: the time that they slowed a part down is told.
TEST(load_bank, a_square_wave_tells_how_long_a_signal_slowed_a_gpu_down) {
  const FakeTree tree;
  const std::string cpu = "sys/devices/system/cpu/cpu0/";
  tree.file(cpu + "topology/physical_package_id", "0\n");
  tree.file(cpu + "thermal_throttle/package_throttle_total_time_ms", "17\n");
  const FakeNvml gpus("power_brake");
  const Record record =
      record_of(probe_file("load_bank"), short_load({"--threads", "1", "--shape", "square", "--frequency-mhz", "2000",
                                                     "--root", tree.path(), "--nvml-library", gpus.library()}));
  if (record.end.status == Status::skip) GTEST_SKIP() << record.end.reason;
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject rank{"rank", "0"};
  EXPECT_EQ(samples_of(record, "throttled_time", rank), std::vector<double>{0});
  EXPECT_GT(samples_of(record, "brake_time", rank).at(0), 0.2);
}

TEST(load_bank, a_machine_without_counters_tells_no_time) {
  const FakeTree tree;
  const Record record =
      record_of(probe_file("load_bank"),
                short_load({"--threads", "1", "--root", tree.path(), "--nvml-library", "/no-such-nvml"}));
  if (record.end.status == Status::skip) GTEST_SKIP() << record.end.reason;
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_TRUE(samples_of(record, "throttled_time", {"rank", "0"}).empty());
  EXPECT_TRUE(samples_of(record, "brake_time", {"rank", "0"}).empty());
}

TEST(LoadReport, is_what_was_told) {
  const LoadReport told =
      load_told_in(text_of({.level_error = 0.25, .late_s = 1e-4, .brake_s = 0, .rates = {1e9, 1.0 / 3}}));
  EXPECT_EQ(told.level_error, 0.25);
  EXPECT_EQ(told.late_s, 1e-4);
  EXPECT_EQ(told.throttled_s, std::nullopt);
  EXPECT_EQ(told.brake_s, 0);
  EXPECT_EQ(told.rates, (std::vector<double>{1e9, 1.0 / 3}));
}
TEST(LoadReport, of_words_is_refused) {
  EXPECT_THROW((void)load_told_in("0 0 nan"), std::runtime_error);
  EXPECT_THROW((void)load_told_in("0 0 nan nan fast"), std::runtime_error);
}

TEST(load_bank, gpus_that_cannot_be_loaded_are_never_replaced_by_processors) {
  const Record record = record_of(probe_file("load_bank"), short_load({"--engine", "gpu", "--gpus", "GPU-no-such"}));
  ASSERT_EQ(record.end.status, Status::skip) << record.end.reason;
  EXPECT_TRUE(record.measurements.empty());
}

}  // namespace
}  // namespace assay::power
