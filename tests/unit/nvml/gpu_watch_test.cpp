// GpuWatch on made-up GPUs: the window between start and stop, and what is left without NVML.
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "probes/core/recorder.h"
#include "probes/nvml/gpu_watch.h"
#include "tests/unit/fake_nvml.h"
#include "tests/unit/probe_process.h"

namespace assay {
namespace {

constexpr Metric kMetrics[] = {{.name = "number", .unit = "1", .meaning = "any"}};
constexpr ProbeSpec kSpec{.name = "watched",
                          .measures = "Nothing.",
                          .method = "None.",
                          .source = "None.",
                          .metrics = kMetrics,
                          .conditions = kGpuWatchConditions};
const Subject kGpu{"gpu", "GPU-under-test"};

/// What a watch writes in a record, through the strict reader.
Record record_with(const GpuWatch& watch) {
  std::ostringstream out;
  Recorder recorder(out, kSpec,
                    {.probe = "watched", .revision = 1, .parameters = {}, .host = {{"name", std::string("n01")}}});
  recorder.measurement("number", 1.0);
  watch.record(recorder, kGpu);
  recorder.end({.status = Status::complete, .reason = ""});
  const auto record = read_record(out.str(), *read_description(describe(kSpec).dump(), "watched"));
  if (!record) throw std::runtime_error(record.error().text());
  return *record;
}

double number_of(const Record& record, const std::string& name) {
  const auto value = value_of(record, name, kGpu);
  if (!value) throw std::runtime_error(name + " is not recorded");
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
  return std::get<double>(*value);
}

}  // namespace

TEST(gpu_watch, without_nvml_only_its_absence_is_recorded) {
  GpuWatch watch("0000:5D:00.0", "libnvidia-ml-absent.so.1");
  watch.start();
  watch.stop();
  const Record record = record_with(watch);
  ASSERT_EQ(record.conditions.size(), 1U);
  EXPECT_EQ(record.conditions[0].name, "nvml");
  EXPECT_TRUE(std::get<std::string>(record.conditions[0].value)
                  .starts_with("absent: NVML cannot be opened: libnvidia-ml-absent"));
  EXPECT_EQ(watch.energy_j(), std::nullopt);
  EXPECT_EQ(watch.window_s(), std::nullopt);
}

TEST(gpu_watch, a_gpu_that_nvml_does_not_know_is_an_absence_that_names_it) {
  const FakeNvml fake("healthy");
  const Record record = record_with(GpuWatch("0000:FF:00.0", fake.library()));
  EXPECT_EQ(value_of(record, "nvml", kGpu),
            Value{std::string("absent: " FAKE_NVML " knows no GPU at 0000:FF:00.0: Not Found (NVML 6)")});
}

TEST(gpu_watch, a_window_has_the_state_of_its_gpu_and_differences_of_counters) {
  const FakeNvml fake("thermal_throttle");
  GpuWatch watch("0000:3A:00.0", fake.library());
  watch.start();
  EXPECT_EQ(watch.energy_j(), std::nullopt);
  watch.stop();
  const Record record = record_with(watch);
  EXPECT_EQ(value_of(record, "nvml", kGpu), Value{std::string("present")});
  EXPECT_EQ(value_of(record, "nvml_driver", kGpu), Value{std::string("simulated 575.57.08")});
  EXPECT_EQ(number_of(record, "sm_clock_min_hz"), 1.275e9);
  EXPECT_EQ(number_of(record, "sm_clock_max_hz"), 1.98e9);
  EXPECT_EQ(number_of(record, "temperature_max_c"), 87);
  EXPECT_EQ(number_of(record, "pcie_generation_min"), 5);
  EXPECT_EQ(number_of(record, "other_processes"), 0);
  EXPECT_EQ(number_of(record, "ecc_uncorrected_delta"), 0);
  EXPECT_EQ(number_of(record, "throttle_power_brake_s"), 0);
  EXPECT_GT(number_of(record, "throttle_hw_thermal_s"), 0);
  EXPECT_LT(number_of(record, "throttle_hw_thermal_s"), 12);
  EXPECT_EQ(number_of(record, "throttle_thermal_s"), number_of(record, "throttle_hw_thermal_s"));
  EXPECT_GE(number_of(record, "watch_samples"), 1);
  EXPECT_EQ(number_of(record, "watch_failures"), 0);
  EXPECT_TRUE(watch.energy_j());
  EXPECT_GT(*watch.window_s(), 0);
  EXPECT_EQ(watch.pcie_generation_min(), 5);
  EXPECT_EQ(watch.pcie_width_min(), 16);
  EXPECT_EQ(watch.pcie_replays(), 0);
}

TEST(gpu_watch, other_processes_are_counted) {
  const FakeNvml fake("busy_gpu");
  GpuWatch watch("0000:18:00.0", fake.library());
  watch.start();
  watch.stop();
  EXPECT_EQ(number_of(record_with(watch), "other_processes"), 2);
}

TEST(gpu_watch, a_gpu_lost_on_the_way_is_counted_as_failures) {
  const FakeNvml fake("lost_gpu");
  GpuWatch watch("0000:AB:00.0", fake.library());
  watch.start();
  watch.stop();
  const Record record = record_with(watch);
  EXPECT_GT(number_of(record, "watch_failures"), 0);
  EXPECT_EQ(value_of(record, "sm_clock_min_hz", kGpu), std::nullopt);
  EXPECT_EQ(value_of(record, "other_processes", kGpu), std::nullopt);
}

TEST(gpu_watch, a_second_window_forgets_the_first_and_an_open_one_is_not_started_again) {
  const FakeNvml fake("healthy");
  GpuWatch watch("0000:5d:00.0", fake.library());
  watch.start();
  EXPECT_THROW(watch.start(), std::logic_error);
  watch.stop();
  watch.start();
  EXPECT_EQ(watch.window_s(), std::nullopt);
  watch.stop();
  watch.stop();
  EXPECT_TRUE(watch.window_s());
}

}  // namespace assay
