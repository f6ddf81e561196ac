// thermal_sensors: reads hwmon and thermal zones (thousandths of a degree), cpufreq (kHz) and throttling times (ms and
// ns).
#include "probes/power/thermal_sensors.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "probes/amd/rocm_library.h"
#include "probes/core/probe.h"

namespace assay::power {
namespace {

constexpr double kMillidegree = 1e-3;
constexpr double kKilohertz = 1e3;
constexpr double kMillisecond = 1e-3;
constexpr double kNanosecond = 1e-9;
constexpr std::string_view kPackageLabel = "Package id ";
constexpr const char* kCpus = "sys/devices/system/cpu/";

std::function<std::optional<double>()> scaled(const MachineTree& tree, std::string path, double scale) {
  return [&tree, path = std::move(path), scale]() -> std::optional<double> {
    const auto number = tree.number(path);
    return number ? std::optional(static_cast<double>(*number) * scale) : std::nullopt;
  };
}

ThermalSeries package_temperature(const MachineTree& tree, const std::string& package, std::string path) {
  return {.name = "temperature of " + package,
          .metric = "temperature",
          .kind = SteadyKind::temperature,
          .subject = {.kind = "cpu", .id = package},
          .read = scaled(tree, std::move(path), kMillidegree)};
}

std::optional<double> seconds_of(const std::optional<std::uint64_t>& ns) {
  return ns ? std::optional(static_cast<double>(*ns) * kNanosecond) : std::nullopt;
}

}  // namespace

ThermalSensors::ThermalSensors(const std::string& root, const std::string& nvml_library) : tree_(root) {
  find_hwmon();
  if (series_.empty()) find_zones();
  find_packages();
  find_gpus(nvml_library);
  find_amd();
  if (gpus_ > 0) no_gpus_.clear();
}

void ThermalSensors::find_hwmon() {
  // k10temp says no package: the PCI functions of the sockets are in their order (amd_nb: slot 18h plus the node).
  std::map<std::string, std::string> amd;  // inputs, by PCI address
  for (const auto& device : tree_.names("sys/class/hwmon")) {
    const std::string directory = "sys/class/hwmon/" + device + "/";
    const std::string name = tree_.text(directory + "name").value_or("");
    if (name != "coretemp" && name != "k10temp") continue;
    std::map<std::string, std::string> inputs;  // by label
    for (const auto& file : tree_.names(directory)) {
      if (!file.starts_with("temp") || !file.ends_with("_label")) continue;
      const std::string input = file.substr(0, file.size() - std::string_view("label").size()) + "input";
      inputs.emplace(tree_.text(directory + file).value_or(""), directory + input);
    }
    if (name == "k10temp") {
      // Tdie is the die itself; Tctl may be shifted, which changes no slope.
      const auto die = inputs.contains("Tdie") ? inputs.find("Tdie") : inputs.find("Tctl");
      if (die != inputs.end()) amd.emplace(tree_.pci_address(directory + "device").value_or(device), die->second);
      continue;
    }
    for (const auto& [label, path] : inputs) {
      if (!label.starts_with(kPackageLabel)) continue;
      series_.push_back(package_temperature(tree_, "package-" + label.substr(kPackageLabel.size()), path));
    }
  }
  int package = 0;
  for (const auto& [address, path] : amd)
    series_.push_back(package_temperature(tree_, fmt::format("package-{}", package++), path));
}

void ThermalSensors::find_zones() {
  for (const auto& zone : tree_.names("sys/class/thermal")) {
    if (!zone.starts_with("thermal_zone")) continue;
    const std::string directory = "sys/class/thermal/" + zone + "/";
    const auto type = tree_.text(directory + "type");
    if (!type || !tree_.number(directory + "temp")) continue;
    series_.push_back({.name = fmt::format("temperature of {} {}", zone, *type),
                       .metric = "temperature",
                       .kind = SteadyKind::temperature,
                       .subject = {},
                       .at = {{"sensor", zone + " " + *type}},
                       .read = scaled(tree_, directory + "temp", kMillidegree)});
  }
}

void ThermalSensors::find_packages() {
  std::map<std::int64_t, std::vector<std::string>> packages;  // directories of their CPUs
  for (const auto& cpu : tree_.names(kCpus)) {
    if (!cpu.starts_with("cpu")) continue;
    const auto package = tree_.number(kCpus + cpu + "/topology/physical_package_id");
    if (package) packages[*package].push_back(kCpus + cpu + "/");
  }
  for (const auto& [number, cpus] : packages) {
    const Subject subject{.kind = "cpu", .id = fmt::format("package-{}", number)};
    if (tree_.number(cpus.front() + "cpufreq/scaling_cur_freq")) {
      series_.push_back({.name = "clock of " + subject.id,
                         .metric = "clock",
                         .kind = SteadyKind::clock,
                         .subject = subject,
                         .read = [this, cpus]() -> std::optional<double> {
                           double sum = 0;
                           for (const auto& cpu : cpus) {
                             const auto clock = tree_.number(cpu + "cpufreq/scaling_cur_freq");
                             if (!clock) return std::nullopt;
                             sum += static_cast<double>(*clock) * kKilohertz;
                           }
                           return sum / static_cast<double>(cpus.size());
                         }});
    }
    const std::string throttled = cpus.front() + "thermal_throttle/package_throttle_total_time_ms";
    if (tree_.number(throttled))
      counters_.push_back(
          {.metric = "throttled_time", .subject = subject, .read_s = scaled(tree_, throttled, kMillisecond)});
  }
}

void ThermalSensors::find_gpus(const std::string& library) {
  try {
    nvml_ = std::make_unique<nvml::Nvml>(library.empty() ? nvml::Nvml::default_library() : library);
  } catch (const Skip& skip) {
    no_gpus_ = skip.what();  // a node without GPUs has processors to watch
    return;
  }
  for (const auto& gpu : nvml_->gpus()) {
    if (const auto uuid = gpu.uuid(); uuid.value) add_gpu(gpu, *uuid.value);
  }
  if (gpus_ == 0) no_gpus_ = nvml_->path() + " knows no GPU";
}

void ThermalSensors::find_amd() {
  try {
    smi_ = std::make_unique<amd::AmdSmi>();
  } catch (const Skip& skip) {
    if (amd::has_driver()) no_gpus_ += std::string("; ") + skip.what();
    return;
  }
  for (const auto& gpu : smi_->gpus()) {
    if (const auto uuid = gpu.uuid(); uuid.value) add_amd(gpu, *uuid.value);
  }
}

void ThermalSensors::add_amd(const amd::AmdGpu& gpu, const std::string& uuid) {
  ++gpus_;
  const auto add = [&](const char* metric, SteadyKind kind, const char* what, auto read) {
    if (read(gpu).value)
      series_.push_back({.name = fmt::format("{} of {}", what, uuid),
                         .metric = metric,
                         .kind = kind,
                         .subject = {.kind = "gpu", .id = uuid},
                         .read = [gpu, read] { return read(gpu).value; }});
  };
  using amd::AmdGpu;
  add("temperature", SteadyKind::temperature, "temperature",
      [](const AmdGpu& one) { return one.temperature_c(amd::smi::kHotspot); });
  add("memory_temperature", SteadyKind::temperature, "temperature of the memory",
      [](const AmdGpu& one) { return one.temperature_c(amd::smi::kMemoryTemperature); });
  add("clock", SteadyKind::clock, "clock", [](const AmdGpu& one) { return one.gfx_clock_hz(); });
}

void ThermalSensors::add_gpu(const nvml::NvmlGpu& gpu, const std::string& uuid) {
  const Subject subject{.kind = "gpu", .id = uuid};
  ++gpus_;
  const auto add = [&](const char* metric, SteadyKind kind, const char* what, auto read) {
    if (read(gpu))
      series_.push_back({.name = fmt::format("{} of {}", what, uuid),
                         .metric = metric,
                         .kind = kind,
                         .subject = subject,
                         .read = [gpu, read] { return read(gpu); }});
  };
  add("temperature", SteadyKind::temperature, "temperature",
      [](const nvml::NvmlGpu& one) { return one.temperature_c().value; });
  add("memory_temperature", SteadyKind::temperature, "temperature of the memory",
      [](const nvml::NvmlGpu& one) { return one.memory_temperature_c().value; });
  add("clock", SteadyKind::clock, "clock", [](const nvml::NvmlGpu& one) { return one.sm_clock_hz().value; });
  const auto thermal = [](const nvml::NvmlGpu& one) -> std::optional<double> {
    const auto times = one.throttle().value;
    if (!times) return std::nullopt;
    if (times->hw_thermal_ns || times->sw_thermal_ns)
      return seconds_of(times->hw_thermal_ns.value_or(0) + times->sw_thermal_ns.value_or(0));
    return seconds_of(times->thermal_ns);
  };
  const auto brake = [](const nvml::NvmlGpu& one) -> std::optional<double> {
    const auto times = one.throttle().value;
    return times ? seconds_of(times->power_brake_ns) : std::nullopt;
  };
  if (thermal(gpu))
    counters_.push_back(
        {.metric = "gpu_throttled_time", .subject = subject, .read_s = [gpu, thermal] { return thermal(gpu); }});
  if (brake(gpu))
    counters_.push_back({.metric = "brake_time", .subject = subject, .read_s = [gpu, brake] { return brake(gpu); }});
}

}  // namespace assay::power
