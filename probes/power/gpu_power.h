// gpu_power: power, energy and power limits of GPUs, by the libraries of their vendors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/power/meter.h"

namespace assay::power {

/// The power limit that one GPU has in force.
struct GpuLimit {
  Subject subject;
  std::optional<double> limit_w;
  std::optional<bool> smooths;            ///< its power (Blackwell)
  std::optional<double> smoothing_floor;  ///< by the driver
};

/// The GPUs of one vendor that count their energy. The functions keep the library open.
struct GpuPower {
  std::string instrument;               ///< "nvml" or "amd_smi"
  std::string library;                  ///< path
  std::string driver;                   ///< version of the driver; empty if not reported
  std::vector<EnergyCounter> counters;  ///< one a GPU: power and energy of the GPU with its memory
  std::vector<PowerGauge> gauges;       ///< as the driver makes them, where it reports them
  std::vector<GpuLimit> limits;         ///< in the order of counters
};

/// By NVML: power_average and power_instant of each GPU, power_module of each superchip. Throws Skip, naming the
/// library and the cause, when it or a driver is not there, or when no GPU has an energy counter.
GpuPower nvml_power(const std::string& library);
/// By AMD SMI: power_instant of each board; of partitions of a GPU the first has the board's. Throws Skip likewise.
GpuPower amd_power();

/// Those of all vendors that are here. Adds to `absences` why one is not: of AMD SMI only where the driver amdgpu is.
std::vector<GpuPower> gpu_power(const std::string& nvml_library, std::vector<std::string>& absences);

}  // namespace assay::power
