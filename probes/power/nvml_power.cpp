// nvml_power: asks each GPU once which readings it has, and then reads only those.
#include <memory>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/nvml/nvml_gpu.h"
#include "probes/power/gpu_power.h"

namespace assay::power {
namespace {

namespace api = nvml_api;

constexpr std::uint64_t kMicrojoules = 1000;  // in one millijoule, the unit of the driver's counter
// The driver refreshes the counter 10 to 50 times a second: under 0.4 s that grain would be over a fifth of a sample.
constexpr double kShortest_s = 0.4;
constexpr unsigned kSmoothingEnabled = 256, kSmoothingFloor = 260;  // nvml.h: NVML_FI_PWR_SMOOTHING_ENABLED and others

EnergyCounter counter_of(const std::shared_ptr<const nvml::Nvml>& nvml, const nvml::NvmlGpu& gpu,
                         const Subject& subject) {
  return {.name = subject.id,
          .source = nvml->path(),
          .subject = subject,
          .power_metric = "power",
          .energy_metric = "energy",
          .range_uj = 0,
          .shortest_s = kShortest_s,
          .read_uj = [nvml, gpu] {
            const auto mj = gpu.energy_mj().value;
            return mj ? std::optional(*mj * kMicrojoules) : std::nullopt;
          }};
}

void add_gauges(const std::shared_ptr<const nvml::Nvml>& nvml, const nvml::NvmlGpu& gpu, const Subject& subject,
                std::vector<PowerGauge>& gauges) {
  struct Reading {
    const char* metric;
    unsigned field, scope;
  };
  constexpr Reading kReadings[] = {{"power_average", api::kFieldPowerAverage, api::kScopeGpu},
                                   {"power_instant", api::kFieldPowerInstant, api::kScopeGpu},
                                   {"power_module", api::kFieldPowerInstant, api::kScopeModule}};
  for (const Reading& reading : kReadings) {
    const auto read = [nvml, gpu, reading] { return gpu.power_field_w(reading.field, reading.scope).value; };
    // A GPU that is no superchip answers 0 W, or not at all, for its module.
    if (read().value_or(0) > 0) gauges.push_back({.subject = subject, .metric = reading.metric, .read_w = read});
  }
}

GpuLimit limit_of(const nvml::NvmlGpu& gpu, const Subject& subject) {
  GpuLimit limit{.subject = subject, .limit_w = gpu.power_limit_w().value, .smooths = {}, .smoothing_floor = {}};
  if (const auto on = gpu.field(kSmoothingEnabled).value) {
    limit.smooths = *on != 0;
    limit.smoothing_floor = gpu.field(kSmoothingFloor).value;
  }
  return limit;
}

}  // namespace

GpuPower nvml_power(const std::string& library) {
  const auto nvml = std::make_shared<const nvml::Nvml>(library);
  GpuPower all{.instrument = "nvml",
               .library = nvml->path(),
               .driver = nvml->driver_version(),
               .counters = {},
               .gauges = {},
               .limits = {}};
  for (const nvml::NvmlGpu& gpu : nvml->gpus()) {
    const auto uuid = gpu.uuid();
    if (!uuid.value || !gpu.energy_mj().value) continue;
    const Subject subject{.kind = "gpu", .id = *uuid.value};
    all.counters.push_back(counter_of(nvml, gpu, subject));
    add_gauges(nvml, gpu, subject, all.gauges);
    all.limits.push_back(limit_of(gpu, subject));
  }
  if (all.counters.empty())
    throw Skip(fmt::format("{} knows no GPU with an energy counter (Volta or newer)", all.library));
  return all;
}

}  // namespace assay::power
