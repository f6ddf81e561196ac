// nvml_power: asks each GPU once which readings it has, and then reads only those.
#include "probes/power/nvml_power.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::power {
namespace {

namespace api = nvml_api;

constexpr std::uint64_t kMicrojoules = 1000;  // in one millijoule, the unit of the driver's counter
// The driver refreshes the counter 10 to 50 times a second: under 0.4 s that grain would be over a fifth of a sample.
constexpr double kShortest_s = 0.4;

}  // namespace

NvmlPower::NvmlPower(const std::string& library) : nvml_(library) {
  for (const nvml::NvmlGpu& gpu : nvml_.gpus()) {
    const auto uuid = gpu.uuid();
    if (uuid.value && gpu.energy_mj().value) gpus_.push_back({gpu, {.kind = "gpu", .id = *uuid.value}});
  }
  if (gpus_.empty()) throw Skip(fmt::format("{} knows no GPU with an energy counter (Volta or newer)", nvml_.path()));
}

std::vector<EnergyCounter> NvmlPower::counters() const {
  std::vector<EnergyCounter> all;
  all.reserve(gpus_.size());
  for (const auto& [gpu, subject] : gpus_) {
    all.push_back({.name = subject.id,
                   .source = nvml_.path(),
                   .subject = subject,
                   .power_metric = "power",
                   .energy_metric = "energy",
                   .range_uj = 0,
                   .shortest_s = kShortest_s,
                   .read_uj = [gpu] {
                     const auto mj = gpu.energy_mj().value;
                     return mj ? std::optional(*mj * kMicrojoules) : std::nullopt;
                   }});
  }
  return all;
}

std::vector<PowerGauge> NvmlPower::gauges() const {
  struct Reading {
    const char* metric;
    unsigned field, scope;
  };
  constexpr Reading kReadings[] = {{"power_average", api::kFieldPowerAverage, api::kScopeGpu},
                                   {"power_instant", api::kFieldPowerInstant, api::kScopeGpu},
                                   {"power_module", api::kFieldPowerInstant, api::kScopeModule}};
  std::vector<PowerGauge> all;
  for (const auto& [gpu, subject] : gpus_) {
    for (const Reading& reading : kReadings) {
      const auto read = [gpu, reading] { return gpu.power_field_w(reading.field, reading.scope).value; };
      // A GPU that is no superchip answers 0 W, or not at all, for its module.
      if (read().value_or(0) > 0) all.push_back({.subject = subject, .metric = reading.metric, .read_w = read});
    }
  }
  return all;
}

}  // namespace assay::power
