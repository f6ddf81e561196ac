// thermal_sensors: temperatures, clocks and throttling of a node's processors and GPUs, as far as reported.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probes/amd/smi.h"
#include "probes/core/machine_tree.h"
#include "probes/core/parameters.h"
#include "probes/core/record.h"
#include "probes/nvml/nvml_gpu.h"
#include "probes/power/steadiness.h"

namespace assay::power {

/// Where ThermalSensors looks.
inline constexpr Parameter kSensorRootParameter =
    parameter("root", "", "/", "directory that holds sys, for a tree saved from another machine");
inline constexpr Parameter kSensorLibraryParameter =
    parameter("nvml_library", "", "", "file name or path of NVML; nothing: the usual one");

/// One number that is read again and again while a machine warms up.
struct ThermalSeries {
  std::string name;    ///< for people: "temperature of package-0"
  std::string metric;  ///< temperature, memory_temperature or clock
  SteadyKind kind = SteadyKind::temperature;
  Subject subject;
  Values at = {};                               ///< which sensor, where a node has several without a part
  std::function<std::optional<double>()> read;  ///< degC or Hz; null optional once it no longer answers
};

/// One count of the time that a part was slowed down.
struct ThrottleCounter {
  std::string metric;  ///< throttled_time, gpu_throttled_time (for temperature), brake_time (a signal)
  Subject subject;
  std::function<std::optional<double>()> read_s;  ///< s since it was reset; null optional once it no longer answers
};

/// The sensors of one machine. Their functions are good for as long as this lives, and it must not move.
class ThermalSensors {
 public:
  /// Looks under `root` ("/": this machine), asks NVML in `nvml_library`, and AMD SMI. Missing parts are left out.
  ThermalSensors(const std::string& root, const std::string& nvml_library);
  ThermalSensors(const ThermalSensors&) = delete;
  ThermalSensors& operator=(const ThermalSensors&) = delete;

  /// Temperatures of packages (hwmon coretemp or k10temp; else every thermal zone, as a sensor of the node), clocks of
  /// packages (cpufreq), and temperatures and clocks of GPUs, by NVML and AMD SMI.
  [[nodiscard]] const std::vector<ThermalSeries>& series() const { return series_; }
  /// Throttled time of packages (Intel's thermal_throttle) and GPUs.
  [[nodiscard]] const std::vector<ThrottleCounter>& counters() const { return counters_; }
  /// How many GPUs are read.
  [[nodiscard]] std::size_t gpus() const { return gpus_; }
  /// Why there are none; else empty.
  [[nodiscard]] const std::string& no_gpus() const { return no_gpus_; }

 private:
  void find_hwmon();
  void find_zones();
  void find_packages();
  void find_gpus(const std::string& library);
  void find_amd();
  void add_gpu(const nvml::NvmlGpu& gpu, const std::string& uuid);
  void add_amd(const amd::AmdGpu& gpu, const std::string& uuid);

  MachineTree tree_;
  std::unique_ptr<nvml::Nvml> nvml_;
  std::unique_ptr<amd::AmdSmi> smi_;
  std::vector<ThermalSeries> series_;
  std::vector<ThrottleCounter> counters_;
  std::size_t gpus_ = 0;
  std::string no_gpus_;
};

}  // namespace assay::power
