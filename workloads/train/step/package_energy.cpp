// package_energy: reads the package zones of RAPL; the node has no figure if one of them cannot be read.
#include "workloads/train/step/package_energy.h"

#include "probes/core/probe.h"
#include "probes/power/energy_series.h"
#include "probes/power/rapl.h"

namespace assay::train {

std::optional<PackageEnergies> package_energies(const std::string& root) {
  constexpr const char* kPlace = "/sys/class/powercap";
  try {
    PackageEnergies all;
    for (const power::RaplZone& zone : power::find_rapl_zones((root == "/" ? "" : root) + kPlace).measured) {
      if (zone.domain != "package") continue;
      all[zone.package] = {.energy_uj = power::read_energy_uj(zone), .range_uj = zone.range_uj};
    }
    return all;
  } catch (const Skip&) {  // a machine without counters has no figure; power_sampler reports which one it lacks
    return std::nullopt;
  }
}

std::optional<double> energy_between_j(const PackageEnergies& before, const PackageEnergies& after, double time_s) {
  constexpr double kMicro = 1e-6;
  if (before.empty() || before.size() != after.size()) return std::nullopt;
  double all_j = 0;
  for (const auto& [package, from] : before) {
    const auto to = after.find(package);
    if (to == after.end() || to->second.range_uj < from.energy_uj) return std::nullopt;
    const double taken_j =
        static_cast<double>(power::energy_between_uj(from.energy_uj, to->second.energy_uj, to->second.range_uj)) *
        kMicro;
    if (!(taken_j > 0) || taken_j > kMostPackage_w * time_s) return std::nullopt;
    all_j += taken_j;
  }
  return all_j;
}

}  // namespace assay::train
