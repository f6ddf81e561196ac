// GpuWatch on made-up GPUs: the window between start and stop, and what is left without NVML.
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "probes/core/recorder.h"
#include "probes/nvml/gpu_errors.h"
#include "probes/nvml/gpu_watch.h"
#include "probes/nvml/users.h"
#include "tests/unit/fake_nvml.h"
#include "tests/unit/probe_process.h"

namespace assay::nvml {
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

/// What GpuErrors of these GPUs counts in 0.2 s.
std::optional<std::int64_t> errors_of(const FakeNvml& fake, const std::vector<std::string>& addresses) {
  setenv("ASSAY_NVML_LIBRARY", fake.library().c_str(), 1);
  const GpuErrors errors(addresses);
  unsetenv("ASSAY_NVML_LIBRARY");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return errors.growth();
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
            Value{"absent: " + fake_nvml() + " knows no GPU at 0000:FF:00.0: Not Found (NVML 6)"});
}

TEST(gpu_watch, a_window_has_the_state_of_its_gpu_and_differences_of_counters) {
  const FakeNvml fake("thermal_throttle", R"({"gpu": {"lists_caller": true}})");
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
  EXPECT_EQ(watch.pcie().generation_min, 5);
  EXPECT_EQ(watch.pcie().width_min, 16);
  EXPECT_EQ(watch.pcie().replays, 0);
}

TEST(gpu_watch, other_processes_are_counted) {
  const FakeNvml fake("busy_gpu", R"({"gpu": {"lists_caller": true}})");
  GpuWatch watch("0000:18:00.0", fake.library());
  watch.start();
  watch.stop();
  EXPECT_EQ(number_of(record_with(watch), "other_processes"), 2);
}

TEST(gpu_watch, a_list_that_lacks_the_process_that_uses_the_gpu_proves_nothing) {
  const FakeNvml fake("healthy");
  GpuWatch watch("0000:18:00.0", fake.library());
  watch.start();
  watch.stop();
  EXPECT_EQ(value_of(record_with(watch), "other_processes", kGpu), std::nullopt);
}

TEST(gpu_watch, errors_that_the_load_brings_are_recorded_as_growth_and_by_number) {
  const FakeNvml fake("errors_under_load");
  GpuWatch watch("0000:9A:00.0", fake.library());
  watch.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  watch.stop();
  const Record record = record_with(watch);
  for (const char* name : {"ecc_corrected_delta", "remapped_rows_delta", "pcie_replays_delta", "nvlink_errors_delta"}) {
    EXPECT_GT(number_of(record, name), 0) << name;
  }
  EXPECT_EQ(number_of(record, "xid_events_delta"), 2);
  EXPECT_EQ(value_of(record, "xid_numbers", kGpu), Value{std::string("63 94")});
}

TEST(gpu_watch, without_errors_every_growth_is_recorded_as_none) {
  const FakeNvml fake("healthy");
  GpuWatch watch("0000:9A:00.0", fake.library());
  watch.start();
  watch.stop();
  const Record record = record_with(watch);
  for (const char* name : {"ecc_corrected_delta", "ecc_uncorrected_delta", "remapped_rows_delta", "pcie_replays_delta",
                           "nvlink_errors_delta", "xid_events_delta"}) {
    EXPECT_EQ(number_of(record, name), 0) << name;
  }
  EXPECT_EQ(value_of(record, "xid_numbers", kGpu), std::nullopt);
}

TEST(gpu_watch, the_state_at_begin_and_end_is_recorded) {
  const FakeNvml fake(
      "healthy",
      R"({"gpu": {"temperature_c": {"start": 40, "rate": 20}, "sm_clock_mhz": {"start": 1980, "rate": -100}}})");
  GpuWatch watch("0000:18:00.0", fake.library());
  watch.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  watch.stop();
  const Record record = record_with(watch);
  EXPECT_GT(number_of(record, "watch_s"), 0.9);
  EXPECT_GE(number_of(record, "temperature_end_c"), number_of(record, "temperature_begin_c") + 15);
  EXPECT_LT(number_of(record, "sm_clock_end_hz"), number_of(record, "sm_clock_begin_hz"));
  EXPECT_LT(number_of(record, "sm_clock_drift"), 0.995);
  EXPECT_GT(number_of(record, "sm_clock_drift"), 0.95);
}

TEST(gpu_watch, energy_is_counted_over_the_load_and_not_over_the_questions_before_and_after) {
  const FakeNvml fake("healthy", R"({"gpu": {"delay_ms": 20}})");
  using Clock = std::chrono::steady_clock;
  GpuWatch watch("0000:18:00.0", fake.library());
  const auto asked = Clock::now();
  watch.start();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto end = Clock::now();
  watch.stop();
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  ASSERT_GT(seconds(asked, begin), 0.2) << "the questions before the load are slow";
  EXPECT_LT(*watch.window_s(), seconds(begin, end) + 0.1);
}

TEST(gpu_watch, after_the_load_errors_are_counted_on_and_clocks_and_energy_are_not) {
  const FakeNvml fake("errors_under_load");
  GpuWatch watch("0000:9A:00.0", fake.library());
  watch.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  watch.end_load();
  const Values at_end = watch.conditions();
  const double window_s = *watch.window_s();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_THROW(watch.start(), std::logic_error) << "the window is still open";
  watch.stop();
  const Record record = record_with(watch);
  EXPECT_EQ(*watch.window_s(), window_s);
  EXPECT_LT(number_of(record, "watch_s"), 0.6);
  EXPECT_FALSE(at_end.contains("pcie_replays_delta"));
  EXPECT_GT(number_of(record, "pcie_replays_delta"), 0);
}

TEST(gpu_errors, of_a_healthy_node_are_none) {
  EXPECT_EQ(errors_of(FakeNvml("healthy"), {"0000:18:00.0", "0000:9a:00.0"}), 0);
}

TEST(gpu_errors, of_all_gpus_of_a_node_are_counted_together) {
  EXPECT_GT(errors_of(FakeNvml("errors_under_load"), {"0000:18:00.0", "0000:9a:00.0"}).value_or(0), 100);
}

TEST(gpu_errors, of_a_gpu_that_counts_less_are_not_known) {
  const FakeNvml fake("healthy", R"({"gpu": {"not_supported": ["ecc_uncorrected"]}})");
  EXPECT_EQ(errors_of(fake, {"0000:18:00.0"}), std::nullopt);
}

TEST(gpu_errors, of_a_gpu_that_nvml_does_not_know_or_without_a_driver_are_not_known) {
  EXPECT_EQ(errors_of(FakeNvml("healthy"), {"0000:18:00.0", "0000:ff:00.0"}), std::nullopt);
  setenv("ASSAY_NVML_LIBRARY", "libnvidia-ml-absent.so.1", 1);
  EXPECT_EQ(GpuErrors({"0000:18:00.0"}).growth(), std::nullopt);
  unsetenv("ASSAY_NVML_LIBRARY");
}

TEST(readings, that_no_longer_move_have_no_drift) {
  Readings readings;
  for (int i = 0; i < 100; ++i) readings.add(i < 50 ? 2000.0 - i : 1950.0);
  EXPECT_EQ(readings.drift(), 1.0);
  Readings few;
  for (int i = 0; i < 7; ++i) few.add(1.0);
  EXPECT_EQ(few.drift(), std::nullopt);
}

TEST(gpu_users, in_the_outermost_namespace_are_those_listed_beside_this_process) {
  const GpuProcess both[] = {{.pid = 7, .memory = 1 << 30}, {.pid = 8, .memory = std::nullopt}};
  EXPECT_EQ(other_processes({.listed = both, .own = 7, .outermost = true, .memory_used = std::nullopt}), 1);
  EXPECT_EQ(other_processes({.listed = {}, .own = std::nullopt, .outermost = true, .memory_used = std::nullopt}), 0);
}

TEST(gpu_users, of_a_list_without_this_process_are_at_least_those_listed) {
  const GpuProcess other[] = {{.pid = 8, .memory = 1 << 30}};
  EXPECT_EQ(other_processes({.listed = other, .own = 7, .outermost = true, .memory_used = 1 << 30}), 1);
  EXPECT_EQ(other_processes({.listed = {}, .own = 7, .outermost = true, .memory_used = 0}), std::nullopt);
}

TEST(gpu_users, in_a_container_show_by_memory_that_no_listed_process_has) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const GpuProcess own[] = {{.pid = 7, .memory = kGiB}};
  EXPECT_EQ(other_processes({.listed = own, .own = 7, .outermost = false, .memory_used = kGiB + (4 << 20)}), 0);
  EXPECT_EQ(other_processes({.listed = own, .own = 7, .outermost = false, .memory_used = 2 * kGiB}), 1);
  EXPECT_EQ(other_processes({.listed = own, .own = 7, .outermost = false, .memory_used = std::nullopt}), std::nullopt);
  EXPECT_EQ(other_processes({.listed = {}, .own = std::nullopt, .outermost = false, .memory_used = kGiB}), 1);
  EXPECT_EQ(other_processes({.listed = {}, .own = std::nullopt, .outermost = false, .memory_used = 1 << 20}), 0);
  const GpuProcess untold[] = {{.pid = 7, .memory = std::nullopt}};
  EXPECT_EQ(other_processes({.listed = untold, .own = 7, .outermost = false, .memory_used = kGiB}), std::nullopt);
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

}  // namespace assay::nvml
