// package_energy: energy of a node's processors, by counters of the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace assay::train {

/// One counter, in uJ, and its wrap value.
struct PackageEnergy {
  std::uint64_t energy_uj = 0, range_uj = 0;
};
/// By name of the package.
using PackageEnergies = std::map<std::string, PackageEnergy>;

/// The counters under `root`/sys/class/powercap; nothing if there is none or it cannot be read.
std::optional<PackageEnergies> package_energies(const std::string& root);

/// Energy of all packages between two readings `time_s` apart, in J. Nothing if the packages differ, a counter stood
/// still, or rose by more than kMostPackage_w allows, as one does that ran back: such a counter says nothing, not 0.
std::optional<double> energy_between_j(const PackageEnergies& before, const PackageEnergies& after, double time_s);

/// Beyond what any package takes: several times the largest of 2026, 500 W.
inline constexpr double kMostPackage_w = 2000;

}  // namespace assay::train
