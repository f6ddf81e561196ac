// NVML as a library that is found at run time: what it answers, what it does not, and what becomes of it without a
// driver.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "probes/nvml/nvlinks.h"
#include "tests/unit/fake_nvml.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::nvml {
namespace {

/// A variable of the environment as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

std::string skip_of(const std::string& library) {
  try {
    const Nvml nvml(library);
  } catch (const Skip& skip) {
    return skip.what();
  }
  return "no skip";
}

}  // namespace

TEST(nvml, a_missing_library_is_a_skip_that_names_it) {
  EXPECT_EQ(
      skip_of("libnvidia-ml-absent.so.1"),
      "NVML cannot be opened: libnvidia-ml-absent.so.1: cannot open shared object file: No such file or directory; it "
      "comes with the NVIDIA driver");
}

TEST(nvml, a_library_that_is_another_is_a_skip_that_says_so) {
  EXPECT_EQ(skip_of("libm.so.6"),
            "libm.so.6 lacks a function that NVML has had since driver 319; it is not NVIDIA's NVML");
}

TEST(nvml, a_library_without_its_driver_is_a_skip_with_its_words) {
  const FakeNvml fake("no_driver");
  EXPECT_EQ(skip_of(fake.library()), fake_nvml() + " finds no working NVIDIA driver: Driver Not Loaded (NVML 9)");
}

TEST(nvml, is_looked_for_in_the_folders_of_libraries_and_by_its_own_variable_first) {
  const FakeNvml fake("healthy");
  const std::string folder = std::filesystem::path(fake.library()).parent_path().string();
  const Variable path("ASSAY_LIBRARY_PATH", "/nonexistent:" + folder);
  EXPECT_EQ(Nvml::default_library(), fake.library());
  EXPECT_EQ(Nvml("libnvidia-ml.so.1").driver_version(), "simulated 575.57.08");
  const Variable library("ASSAY_NVML_LIBRARY", "/elsewhere/libnvidia-ml.so.1");
  EXPECT_EQ(Nvml::default_library(), "/elsewhere/libnvidia-ml.so.1");
}

TEST(nvml, is_found_by_the_probes_of_health_and_power_as_by_those_of_cuda) {
  const FakeNvml fake("healthy");
  const Variable library("ASSAY_NVML_LIBRARY", fake.library());
  const Record health = record_of(probe_file("health_gpu"), {"--kernel-log", nvml_state("quiet.log")});
  EXPECT_EQ(health.end.status, Status::complete) << health.end.reason;
  const Record power = record_of(probe_file("power_sampler"), {"--duration", "300ms"});
  EXPECT_TRUE(std::ranges::any_of(power.measurements, [](const Measurement& m) { return m.subject.kind == "gpu"; }));
}

TEST(nvml, a_simulated_driver_says_so) {
  const FakeNvml fake("healthy");
  const Nvml nvml(fake.library());
  EXPECT_EQ(nvml.driver_version(), "simulated 575.57.08");
  EXPECT_EQ(nvml.path(), fake_nvml());
}

TEST(nvml, results_are_told_absent_or_failed) {
  EXPECT_EQ(told_by(nvml_api::kSuccess), Availability::told);
  EXPECT_EQ(told_by(nvml_api::kNotSupported), Availability::absent);
  EXPECT_EQ(told_by(nvml_api::kNoPermission), Availability::absent);
  EXPECT_EQ(told_by(nvml_api::kFunctionNotFound), Availability::absent);
  EXPECT_EQ(told_by(nvml_api::kGpuIsLost), Availability::failed);
  EXPECT_EQ(told_by(nvml_api::kUnknown), Availability::failed);
  EXPECT_EQ(told_by(12345), Availability::failed);
}

TEST(nvml, a_bus_address_is_spelled_as_linux_does) {
  EXPECT_EQ(pci_address_of("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(pci_address_of("00010000:AF:00.0"), "10000:af:00.0");
  EXPECT_EQ(pci_address_of("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(pci_address_of("1b"), "1b");
}

TEST(nvml, units_are_base_units) {
  const FakeNvml fake("healthy");
  const Nvml nvml(fake.library());
  const NvmlGpu gpu = nvml.gpus().at(3);
  EXPECT_EQ(gpu.uuid().value, uuid_of(3));
  EXPECT_EQ(gpu.pci_address().value, "0000:5d:00.0");
  EXPECT_EQ(gpu.sm_clock_hz().value, 1.98e9);
  EXPECT_EQ(gpu.power_w().value, 120);
  EXPECT_EQ(gpu.power_limit_w().value, 700);
  EXPECT_EQ(gpu.memory().value, 150754820096U);
  EXPECT_EQ(gpu.temperature_c().value, 41);
  EXPECT_EQ(gpu.memory_temperature_c().value, 45);
}

TEST(nvml, what_a_gpu_does_not_have_is_absent_and_no_failure) {
  const FakeNvml fake("healthy");
  const Nvml nvml(fake.library());
  const NvmlGpu gpu = nvml.gpus().at(0);
  EXPECT_EQ(gpu.retired_pages_pending().value, std::nullopt);
  EXPECT_FALSE(gpu.retired_pages_pending().failed());
  EXPECT_EQ(gpu.power_field_w(nvml_api::kFieldPowerInstant, nvml_api::kScopeModule).value, std::nullopt);
  EXPECT_FALSE(gpu.field(4711).failed());
}

TEST(nvml, a_lost_gpu_fails_every_question_and_its_neighbours_answer) {
  const FakeNvml fake("lost_gpu");
  const Nvml nvml(fake.library());
  const auto gpus = nvml.gpus();
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_TRUE(gpus[5].uuid().failed());
  EXPECT_TRUE(gpus[5].throttle().failed());
  EXPECT_TRUE(gpus[5].processes().failed());
  EXPECT_TRUE(read_nvlinks(gpus[5]).failed());
  EXPECT_EQ(gpus[6].uuid().value, uuid_of(6));
}

TEST(nvml, a_gpu_without_a_handle_is_counted_and_fails) {
  const FakeNvml fake("unreachable_gpu");
  const Nvml nvml(fake.library());
  const auto gpus = nvml.gpus();
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_TRUE(gpus[5].temperature_c().failed());
  EXPECT_TRUE(gpus[5].remapped_rows().failed());
  EXPECT_EQ(gpus[5].index(), 5U);
}

TEST(nvlinks, a_dead_link_is_inactive_and_its_errors_count) {
  const FakeNvml fake("dead_nvlink");
  const Nvml nvml(fake.library());
  const auto links = read_nvlinks(nvml.gpus().at(3)).value;
  ASSERT_TRUE(links);
  EXPECT_EQ(links->active, 17U);
  EXPECT_EQ(links->inactive, 1U);
  EXPECT_EQ(links->errors, 1284U);
}

TEST(nvlinks, a_bit_error_rate_is_a_mantissa_and_an_exponent_and_never_above_one) {
  struct Case {
    double packed;
    std::optional<double> rate;
  };
  for (const Case& one : {Case{4095, 15e-255},
                          {0, 0.0},
                          {1000, 3e-232},
                          {1025, 0.4},
                          {2048, std::nullopt},  // 8
                          {4096, std::nullopt},
                          {1.5, std::nullopt},
                          {-1, std::nullopt},
                          {std::nan(""), std::nullopt}}) {
    const auto rate = bit_error_rate(one.packed);
    ASSERT_EQ(rate.has_value(), one.rate.has_value()) << one.packed;
    if (rate) {
      EXPECT_NEAR(*rate, *one.rate, 1e-12 * *one.rate) << one.packed;
    }
  }
}

TEST(nvlinks, numbers_are_ranges) {
  EXPECT_EQ(ranges_of({0, 1, 2, 5, 7, 8}), "0-2 5 7-8");
  EXPECT_EQ(ranges_of({4}), "4");
  EXPECT_EQ(ranges_of({}), "");
}

TEST(nvlinks, recoveries_bit_errors_and_the_other_ends_are_those_of_the_driver) {
  const FakeNvml fake(
      "healthy",
      R"({"gpu": {"link_every_effective_ber": 4095, "link_2_symbol_ber": 783, "link_2_recovery_events": 5,
                          "link_1_recoveries": 3}})");
  const Nvml nvml(fake.library());
  const auto facts = read_nvlink_facts(nvml.gpus().at(0)).value;
  ASSERT_TRUE(facts);
  EXPECT_DOUBLE_EQ(facts->links.at(2).effective_ber.value(), 15e-255);
  EXPECT_DOUBLE_EQ(facts->links.at(2).symbol_ber.value(), 3e-15);
  EXPECT_EQ(facts->links.at(2).recoveries, 5U);
  EXPECT_EQ(facts->links.at(1).recoveries, 3U);  // NVLink 4 counts in another field
  EXPECT_EQ(facts->links.at(0).symbol_ber, std::nullopt);
  EXPECT_EQ(facts->remote_ends,
            "switch 0000:05:00.0: 0 2 4 6 8 10 12 14 16; switch 0000:06:00.0: 1 3 5 7 9 11 13 15 17");
}

TEST(nvlinks, a_gpu_without_links_has_none_of_these_facts) {
  const FakeNvml fake("healthy", R"({"gpu": {"links": 0}})");
  const Nvml nvml(fake.library());
  EXPECT_FALSE(read_nvlink_facts(nvml.gpus().at(0)).value.has_value());
  EXPECT_FALSE(read_nvlink_facts(nvml.gpus().at(0)).failed());
  EXPECT_FALSE(read_c2c_links(nvml.gpus().at(0)).value.has_value());
}

TEST(nvlinks, links_to_the_processor_are_counted_with_their_speed) {
  const FakeNvml fake("superchip", R"({"gpu": {"c2c_3_state": 0, "c2c_4_speed_mbps": 0, "c2c_5_replays": 6}})");
  const Nvml nvml(fake.library());
  const auto c2c = read_c2c_links(nvml.gpus().at(0)).value;
  ASSERT_TRUE(c2c);
  EXPECT_EQ(c2c->facts.states, "active: 0-2 4-9; inactive: 3");
  EXPECT_DOUBLE_EQ(c2c->facts.links.at(0).speed.value(), 44.712e9);
  EXPECT_EQ(c2c->errors, 6U);
  EXPECT_EQ(c2c->facts.contradictions, std::vector<std::string>{"C2C link 4 is active at 0 B/s"});
}

TEST(nvml, a_process_on_a_gpu_is_counted_once) {
  const FakeNvml fake("busy_gpu");
  const Nvml nvml(fake.library());
  const auto busy = nvml.gpus().at(0).processes().value.value();
  ASSERT_EQ(busy.size(), 2U);
  EXPECT_EQ(busy[0].pid, 1048001U);
  EXPECT_EQ(busy[1].pid, 1048002U);
  EXPECT_EQ(busy[0].memory, std::uint64_t{1} << 30);
  EXPECT_TRUE(nvml.gpus().at(1).processes().value.value().empty());
  EXPECT_EQ(nvml.gpus().at(1).memory_used().value, 3145728U);
}

}  // namespace assay::nvml
