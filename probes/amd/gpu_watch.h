// gpu_watch: the state of one AMD GPU during a measurement: clocks, temperature, power, throttling, errors.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "probes/core/probe.h"
#include "probes/core/record.h"

namespace assay {
class Recorder;
}  // namespace assay

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

/// Watches one GPU from start() to stop(). Readings are taken every 100 ms in a thread of its own. Where AMD SMI or the
/// GPU in it is absent everything is allowed and nothing is known.
class GpuWatch {
 public:
  /// `pci_address` as Linux spells it.
  explicit GpuWatch(const std::string& pci_address);
  ~GpuWatch();
  GpuWatch(GpuWatch&&) noexcept;
  GpuWatch& operator=(GpuWatch&&) noexcept;

  /// Begins a window.
  void start();
  /// Ends the readings; errors and throttling are counted on until stop().
  void end_load();
  /// Ends the window. Without one it does nothing.
  void stop();
  /// Lowest PCIe generation and fewest lanes that the last window saw, and replays that it added.
  [[nodiscard]] std::optional<int> pcie_generation_min() const;
  [[nodiscard]] std::optional<int> pcie_width_min() const;
  [[nodiscard]] std::optional<int> pcie_replays() const;
  /// Records kGpuWatchConditions of `subject`: those that AMD SMI reported.
  void record(Recorder& record, const Subject& subject) const;

 private:
  class Watched;
  std::unique_ptr<Watched> watched_;  // null where AMD SMI is absent
  std::string absence_;
};

}  // namespace assay::amd
