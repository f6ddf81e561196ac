// rapl: the energy counters of processors and their memory that Linux shows under powercap (Intel; AMD shows the same).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probes/power/meter.h"

namespace assay::power {

/// One energy counter that is measured.
struct RaplZone {
  std::string path;            ///< of its energy_uj file
  std::string package;         ///< the name the kernel gives its package: "package-0", "package-0-die-1"
  std::string domain;          ///< "package" or "dram"
  std::uint64_t range_uj = 0;  ///< where the counter wraps
};

/// The content of a powercap directory.
struct RaplZones {
  std::vector<RaplZone> measured;     ///< package and dram zones, sorted by package, package before dram
  std::vector<std::string> left_out;  ///< zones that are part of another (core, uncore) or contain others (psys)
};

/// The zones under `powercap` (normally /sys/class/powercap). Throws Skip, naming the path and the cause, when there is
/// no package zone or a counter cannot be read.
RaplZones find_rapl_zones(const std::string& powercap);

/// The counter of `zone` in uJ. Throws Skip, naming the path and the cause, when it cannot be read.
std::uint64_t read_energy_uj(const RaplZone& zone);

/// `zone` as a counter: power and energy of its package, power_dram and energy_dram of the memory behind it.
EnergyCounter rapl_counter(const RaplZone& zone);

}  // namespace assay::power
