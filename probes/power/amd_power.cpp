// amd_power: the energy counter of each board by AMD SMI, and all vendors together.
#include <cmath>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "probes/amd/gpu_facts.h"
#include "probes/amd/rocm_library.h"
#include "probes/core/probe.h"
#include "probes/power/gpu_power.h"

namespace assay::power {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kShortestOfAmd_s = 0.4;  // as of NVIDIA's counters; AMD states no grain

/// The address without the function, which numbers the partitions of a GPU.
std::string board_of(const std::string& pci_address) { return pci_address.substr(0, pci_address.find('.')); }

}  // namespace

GpuPower amd_power() {
  const auto smi = std::make_shared<const amd::AmdSmi>();
  GpuPower all{
      .instrument = "amd_smi", .library = smi->path(), .driver = {}, .counters = {}, .gauges = {}, .limits = {}};
  std::set<std::string> boards;
  for (const amd::AmdGpu& gpu : smi->gpus()) {
    const auto uuid = gpu.uuid().value, address = gpu.pci_address().value;
    if (!uuid || !address || !gpu.energy_j().value || !boards.insert(board_of(*address)).second) continue;
    const Subject subject{.kind = "gpu", .id = *uuid};
    if (all.driver.empty()) all.driver = amd::driver_version(*smi, gpu).value_or("");
    all.counters.push_back({.name = subject.id,
                            .source = smi->path(),
                            .subject = subject,
                            .power_metric = "power",
                            .energy_metric = "energy",
                            .range_uj = 0,
                            .shortest_s = kShortestOfAmd_s,
                            .read_uj = [smi, gpu]() -> std::optional<std::uint64_t> {
                              const auto energy_j = gpu.energy_j().value;
                              if (!energy_j) return std::nullopt;
                              return static_cast<std::uint64_t>(std::llround(*energy_j / kMicro));
                            }});
    const auto read = [smi, gpu] { return gpu.power_w().value; };
    if (read()) all.gauges.push_back({.subject = subject, .metric = "power_instant", .read_w = read});
    all.limits.push_back(
        {.subject = subject, .limit_w = gpu.power_limit_w().value, .smooths = {}, .smoothing_floor = {}});
  }
  if (all.counters.empty()) throw Skip(fmt::format("{} knows no GPU with an energy counter", all.library));
  return all;
}

std::vector<GpuPower> gpu_power(const std::string& nvml_library, std::vector<std::string>& absences) {
  std::vector<GpuPower> all;
  try {
    all.push_back(nvml_power(nvml_library));
  } catch (const Skip& skip) {
    absences.emplace_back(skip.what());
  }
  try {
    all.push_back(amd_power());
  } catch (const Skip& skip) {
    if (amd::has_driver()) absences.emplace_back(skip.what());
  }
  return all;
}

}  // namespace assay::power
