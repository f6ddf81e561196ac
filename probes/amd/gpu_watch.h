// gpu_watch: the state of one AMD GPU during a measurement: clocks, temperature, power, throttling, errors.
#pragma once

#include <string>

#include "probes/core/probe.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::amd {

/// Every condition that GpuWatch records; a probe that watches declares them with its own.
inline constexpr ConditionSpec kGpuWatchConditions[] = {
    {.name = "amd_smi",
     .meaning =
         "\"present\" or why AMD SMI could not be asked; without it no other condition of the watch is recorded"},
    if_present("amd_smi_version", "version of AMD SMI, if present"),
    if_present("watch_samples", "readings of clocks, temperature and power while measuring, if AMD SMI is present"),
    if_present("watch_failures", "questions that AMD SMI answered with an error, if present"),
    if_present("watch_s", "time from the first reading to the last, in s, if AMD SMI is present"),
    if_reported("gfx_clock_min_hz", "lowest clock of the compute units read while measuring, where AMD SMI reports it"),
    if_reported("gfx_clock_mean_hz", "mean of those readings, where AMD SMI reports them"),
    if_reported("memory_clock_min_hz", "lowest memory clock read while measuring, where AMD SMI reports it"),
    if_reported("temperature_begin_c", "first temperature of the hottest spot, where AMD SMI reports it"),
    if_reported("temperature_end_c", "last temperature of the hottest spot, where AMD SMI reports it"),
    if_reported("temperature_max_c", "highest temperature of the hottest spot, where AMD SMI reports it"),
    if_reported("memory_temperature_max_c", "highest temperature of the memory, where AMD SMI reports it"),
    if_reported("power_max_w", "highest power read while measuring, where AMD SMI reports it"),
    if_reported("power_mean_w", "energy over time while measuring, where AMD SMI counts it"),
    if_reported("power_limit_w", "power limit in force, where AMD SMI reports it"),
    if_reported("thermal_violations_delta",
                "readings of the firmware while measuring in which heat lowered clocks, where AMD SMI counts them"),
    if_reported(
        "power_violations_delta",
        "readings of the firmware while measuring in which the power limit lowered clocks, where AMD SMI counts "
        "them (usual under a dense load)"),
    if_reported("ecc_corrected_delta", "corrected errors while measuring, where AMD SMI counts them"),
    if_reported("ecc_uncorrected_delta", "uncorrected errors while measuring, where AMD SMI counts them"),
    if_reported("ecc_deferred_delta", "deferred errors while measuring, where AMD SMI counts them"),
    if_reported("retired_pages_delta", "memory pages taken out of use while measuring, where AMD SMI lists them"),
    if_reported("pcie_replays_delta", "PCIe replays while measuring, where AMD SMI counts them"),
    if_reported("other_processes",
                "other processes on the GPU, the larger count of start and end, outside of containers, which do not "
                "see those of others"),
};

/// A watch of AMD SMI; its energy counter is in J since the driver was loaded.
struct GpuWatch : nvml::GpuWatch {
  /// `pci_address` as Linux spells it.
  explicit GpuWatch(const std::string& pci_address);
};

}  // namespace assay::amd
