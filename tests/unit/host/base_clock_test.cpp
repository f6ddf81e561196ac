// The base clock, where the machine tells it of every CPU.
#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/host/base_clock.h"
#include "tests/unit/fake_tree.h"

namespace assay::host {

TEST(base_clock, is_the_lowest_of_all_cpus_and_nothing_where_one_does_not_tell) {
  const FakeTree tree;
  const std::string cpu = "sys/devices/system/cpu/cpu";
  tree.file(cpu + "0/cpufreq/base_frequency", "2600000\n");
  tree.file(cpu + "1/acpi_cppc/nominal_freq", "2450\n");
  const MachineTree machine(tree.path());
  EXPECT_EQ(base_clock_hz(machine, std::vector<int>{0, 1}), 2.45e9);
  EXPECT_EQ(base_clock_hz(machine, std::vector<int>{0}), 2.6e9);
  EXPECT_EQ(base_clock_hz(machine, std::vector<int>{0, 2}), std::nullopt);
  EXPECT_EQ(base_clock_hz(machine, std::vector<int>{}), std::nullopt);
}

}  // namespace assay::host
