// base_clock: the clock that a processor promises under full load, as the machine reports it.
#pragma once

#include <optional>
#include <span>

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::host {

/// The lowest base clock of these CPUs in Hz: cpufreq's base_frequency (Intel), else the nominal frequency of the
/// firmware's CPPC table (AMD, Arm). Nothing unless every one of them reports it: virtual machines do not.
std::optional<double> base_clock_hz(const MachineTree& tree, std::span<const int> cpus);

}  // namespace assay::host
