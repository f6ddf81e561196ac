// gpu_watch: the state of one GPU during a measurement: clocks, temperature, power, throttling, errors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/record.h"

namespace assay::nvml {

/// Readings in the order taken.
class Readings {
 public:
  /// Keeps `reading` when there is one.
  void add(const std::optional<double>& reading);
  [[nodiscard]] bool empty() const { return values_.empty(); }
  /// None of these may be asked while empty().
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;
  [[nodiscard]] double mean() const;
  [[nodiscard]] double first() const { return values_.front(); }
  [[nodiscard]] double last() const { return values_.back(); }
  /// Mean of the last quarter of the readings over that of the quarter before: 1 where nothing moves any more. Nothing
  /// with fewer than eight, of which a quarter is two.
  [[nodiscard]] std::optional<double> drift() const;

 private:
  std::vector<double> values_;
};

/// Every condition that GpuWatch records; a probe that watches declares them with its own.
inline constexpr ConditionSpec kGpuWatchConditions[] = {
    {.name = "nvml",
     .meaning = "\"present\" or why NVML could not be asked; without it no other condition of the watch is recorded"},
    if_present("nvml_library", "path of the NVML that answered, where there is one"),
    if_present("nvml_driver", "version of the NVIDIA driver as NVML reports it, where there is one"),
    if_present("watch_samples", "readings of clocks, temperature and power while measuring, where NVML is there"),
    if_present("watch_failures", "questions that the driver answered with an error, where NVML is there"),
    if_present("watch_s", "time from the first reading to the last, in s, where NVML is there"),
    if_reported("sm_clock_min_hz", "lowest SM clock read while measuring, where NVML reports it"),
    if_reported("sm_clock_mean_hz", "mean of the SM clock readings, where NVML reports it"),
    if_reported("sm_clock_begin_hz", "first SM clock reading, where NVML reports it"),
    if_reported("sm_clock_end_hz", "last SM clock reading, where NVML reports it"),
    if_occurred("sm_clock_drift",
                "mean SM clock of the last quarter of the readings over that of the quarter before, where there are "
                "eight or more: below 1 it still fell"),
    if_reported("sm_clock_max_hz", "SM clock that the GPU is made for, where NVML reports it"),
    if_reported("memory_clock_min_hz", "lowest memory clock read while measuring, where NVML reports it"),
    if_reported("memory_clock_max_hz", "memory clock that the GPU is made for, where NVML reports it"),
    if_reported("temperature_begin_c", "first temperature reading, where NVML reports it"),
    if_reported("temperature_end_c", "last temperature reading, where NVML reports it"),
    if_reported("memory_temperature_max_c",
                "highest temperature of the memory read while measuring, where NVML reports it"),
    if_reported("temperature_max_c", "highest temperature read while measuring, where NVML reports it"),
    if_present("power_mean_w", "energy over time while measuring, where NVML has an energy counter"),
    if_reported("power_begin_w", "first power reading, where NVML reports it"),
    if_reported("power_end_w", "last power reading, where NVML reports it"),
    if_reported("power_max_w", "highest power read while measuring, where NVML reports it"),
    if_reported("power_limit_w", "power limit in force, where NVML reports it"),
    if_reported(
        "throttle_power_cap_s",
        "time that the power limit lowered clocks while measuring (usual under a dense load), where NVML counts it"),
    if_reported(
        "throttle_thermal_s",
        "time that clocks were lowered for temperature while measuring, by software or hardware, where NVML counts it"),
    if_reported(
        "throttle_sw_thermal_s",
        "time that software lowered clocks for temperature while measuring, where NVML counts it (from driver 575)"),
    if_reported("throttle_hw_thermal_s",
                "time that hardware lowered clocks for temperature while measuring, where NVML counts it"),
    if_reported("throttle_power_brake_s",
                "time that an outside signal lowered clocks while measuring, where NVML counts it"),
    if_reported("ecc_corrected_delta", "corrected memory errors while measuring, where ECC is on"),
    if_reported("ecc_uncorrected_delta", "uncorrected memory errors while measuring, where ECC is on"),
    if_reported("remapped_rows_delta",
                "memory rows that were replaced, wait for a reset to be replaced, or could not be replaced, while "
                "measuring, where the GPU can"),
    if_reported("nvlink_errors_delta", "errors of all NVLinks while measuring, where they are counted"),
    if_reported("xid_events_delta",
                "errors (Xid) that the driver reported of the GPU while measuring, where NVML delivers them"),
    if_occurred("xid_numbers", "numbers of those errors, where there were any"),
    if_reported("pcie_replays_delta", "PCIe replays while measuring, where NVML counts them"),
    if_reported("pcie_generation_min", "lowest PCIe generation read while measuring, where NVML reports it"),
    if_reported("pcie_width_min", "fewest PCIe lanes read while measuring, where NVML reports them"),
    if_reported("other_processes",
                "other processes on the GPU, the larger count of start and end, where that can be told: the driver "
                "lists those of the probe's own process namespace, and in a container memory in use that none of them "
                "has counts as one more"),
};

/// What a watch asks of one GPU of any vendor; GpuWatch says what each does.
class WatchedGpu {
 public:
  virtual ~WatchedGpu() = default;
  virtual void start() = 0;
  virtual void end_load() = 0;
  virtual void stop() = 0;
  [[nodiscard]] virtual Values conditions() const = 0;
  [[nodiscard]] virtual std::optional<double> energy_j() const = 0;
  [[nodiscard]] virtual std::optional<double> window_s() const = 0;
  /// Lowest PCIe generation and fewest lanes that the last window saw, and replays that it added.
  struct Pcie {
    std::optional<int> generation_min{}, width_min{}, replays{};
  };
  [[nodiscard]] virtual Pcie pcie() const = 0;
};

/// Watches one GPU, on which this process has a context, from start() to stop(). Readings are taken every 100 ms in a
/// thread of its own, and one at once: start it when the load runs. Where the vendor's library is absent everything is
/// allowed and nothing is known.
class GpuWatch {
 public:
  /// Of NVML. `pci_bus_id` in any spelling ("0000:1B:00.0"). `library` is a file name or path of NVML; empty:
  /// Nvml::default_library().
  explicit GpuWatch(const std::string& pci_bus_id, const std::string& library = "");
  /// Of another library: `watched`, or null and the conditions that say why.
  GpuWatch(std::unique_ptr<WatchedGpu> watched, Values absence)
      : watched_(std::move(watched)), absence_(std::move(absence)) {}

  /// Begins a window; readings of an earlier one are dropped. The questions take milliseconds each, and the energy
  /// counter is read last. Throws std::logic_error while a window is open.
  void start();
  /// Ends the readings of clocks, temperature and power, and the count of energy; errors and throttling are counted on
  /// until stop(). For work after the load that is to be watched only for errors. Without a window it does nothing.
  void end_load();
  /// Ends the window: the energy counter is read first, where end_load() has not. Without a window it does nothing.
  void stop();
  /// Readings of the last window: those conditions of the vendor that its library reported.
  [[nodiscard]] Values conditions() const { return watched_ ? watched_->conditions() : absence_; }
  /// Records conditions() of `subject`.
  void record(Recorder& record, const Subject& subject) const;

  /// Energy of the last whole window in J.
  [[nodiscard]] std::optional<double> energy_j() const { return watched_ ? watched_->energy_j() : std::nullopt; }
  /// Time between the two readings of the energy counter, in s.
  [[nodiscard]] std::optional<double> window_s() const { return watched_ ? watched_->window_s() : std::nullopt; }
  /// See WatchedGpu::pcie.
  [[nodiscard]] WatchedGpu::Pcie pcie() const { return watched_ ? watched_->pcie() : WatchedGpu::Pcie{}; }

 private:
  std::unique_ptr<WatchedGpu> watched_;  // null where the library is absent
  Values absence_;
};

}  // namespace assay::nvml
