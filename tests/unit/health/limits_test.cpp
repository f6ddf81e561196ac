// health_limits as a process on made-up machines.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::health {
namespace {

using Samples = std::vector<double>;

void add_clock(const FakeTree& tree, int policy, const std::string& cpus, const std::string& limit) {
  const std::string directory = fmt::format("sys/devices/system/cpu/cpufreq/policy{}/", policy);
  tree.file(directory + "cpuinfo_max_freq", "3500000\n");
  tree.file(directory + "scaling_max_freq", limit + "\n");
  tree.file(directory + "affected_cpus", cpus + "\n");
  tree.file(directory + "scaling_driver", "acpi-cpufreq\n");
  tree.file(directory + "scaling_governor", "performance\n");
}

void add_package(const FakeTree& tree, int number, const std::string& limit) {
  const std::string directory = fmt::format("sys/class/powercap/intel-rapl:{}/", number);
  tree.file(directory + "name", fmt::format("package-{}\n", number));
  tree.file(directory + "constraint_0_name", "long_term\n");
  tree.file(directory + "constraint_0_max_power_uw", "350000000\n");
  tree.file(directory + "constraint_0_power_limit_uw", limit + "\n");
}

Record limits_of(const FakeTree& tree) { return record_of(probe_file("health_limits"), {"--root", tree.path()}); }

Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

}  // namespace

TEST(health_limits, a_machine_at_its_own_limits_counts_none) {
  const FakeTree tree;
  add_clock(tree, 0, "0 1", "3500000");
  add_package(tree, 0, "350000000");
  add_package(tree, 1, "400000000");  // above the design power is allowed by some boards, and slows nothing
  tree.file("sys/devices/system/cpu/cpufreq/boost", "1\n");
  const Record record = limits_of(tree);
  const Subject node = node_of(record);
  EXPECT_EQ(samples_of(record, "clock_limits_lowered", node), Samples{0});
  EXPECT_EQ(samples_of(record, "power_limits_lowered", node), Samples{0});
  EXPECT_EQ(samples_of(record, "turbo_off", node), Samples{0});
  EXPECT_EQ(value_of(record, "governor", node), Value{std::string("performance")});
}

TEST(health_limits, every_cpu_of_a_lowered_clock_domain_counts) {
  const FakeTree tree;
  add_clock(tree, 0, "0 1 2", "3500000");
  add_clock(tree, 3, "3 4 5", "2000000");
  const Record record = limits_of(tree);
  EXPECT_EQ(samples_of(record, "clock_limits_lowered", node_of(record)), Samples{3});
  EXPECT_EQ(value_of(record, "lowest_clock_limit_hz", node_of(record)), Value{2e9});
  EXPECT_EQ(samples_of(record, "power_limits_lowered", node_of(record)), Samples{});  // no RAPL: no figure, not 0
}

TEST(health_limits, a_lowered_power_limit_and_both_switches_for_turbo_are_found) {
  const FakeTree tree;
  add_package(tree, 0, "350000000");
  add_package(tree, 1, "200000000");
  tree.file("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  const Record record = limits_of(tree);
  EXPECT_EQ(samples_of(record, "power_limits_lowered", node_of(record)), Samples{1});
  EXPECT_EQ(value_of(record, "lowest_power_limit_w", node_of(record)), Value{200.0});
  EXPECT_EQ(samples_of(record, "turbo_off", node_of(record)), Samples{1});
  const FakeTree other;
  other.file("sys/devices/system/cpu/cpufreq/boost", "0\n");
  const Record switched = limits_of(other);
  EXPECT_EQ(samples_of(switched, "turbo_off", node_of(switched)), Samples{1});
}

TEST(health_limits, a_limit_of_unknown_maximum_is_no_figure_and_a_machine_without_any_is_a_skip) {
  const FakeTree tree;
  add_package(tree, 0, "200000000");
  tree.file("sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", "0\n");
  const Record record = limits_of(tree);
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("no limit of clocks or power"), std::string::npos) << record.end.reason;
}

}  // namespace assay::health
