// base_clock: two files of sysfs in two units.
#include "probes/host/base_clock.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"

namespace assay::host {

std::optional<double> base_clock_hz(const MachineTree& tree, std::span<const int> cpus) {
  constexpr double kKilohertz = 1e3;
  constexpr double kMegahertz = 1e6;
  std::optional<double> lowest;
  for (const int cpu : cpus) {
    const std::string directory = fmt::format("sys/devices/system/cpu/cpu{}/", cpu);
    const auto base = tree.number(directory + "cpufreq/base_frequency");
    const auto nominal = tree.number(directory + "acpi_cppc/nominal_freq");
    const double clock = base      ? static_cast<double>(*base) * kKilohertz
                         : nominal ? static_cast<double>(*nominal) * kMegahertz
                                   : 0;
    if (!(clock > 0)) return std::nullopt;
    lowest = std::min(lowest.value_or(clock), clock);
  }
  return lowest;
}

}  // namespace assay::host
