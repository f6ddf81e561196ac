// nvml_power: power and energy of GPUs, from the NVIDIA driver.
#pragma once

#include <string>
#include <vector>

#include "probes/nvml/nvml_gpu.h"
#include "probes/power/meter.h"

namespace assay::power {

/// The counters and gauges of every GPU. Their functions are good for as long as this lives, and it must not move.
class NvmlPower {
 public:
  /// Opens NVML. Throws Skip, naming the library and the cause, when it or a driver is not there, or when no GPU has an
  /// energy counter.
  explicit NvmlPower(const std::string& library);
  NvmlPower(const NvmlPower&) = delete;
  NvmlPower& operator=(const NvmlPower&) = delete;

  /// One counter a GPU: power and energy of the GPU with its memory.
  [[nodiscard]] std::vector<EnergyCounter> counters() const;
  /// power_average and power_instant of each GPU, power_module of each superchip, where the driver reports them.
  [[nodiscard]] std::vector<PowerGauge> gauges() const;
  /// The library and the driver in use.
  [[nodiscard]] const nvml::Nvml& nvml() const { return nvml_; }

 private:
  struct Named {
    nvml::NvmlGpu gpu;
    Subject subject;
  };
  nvml::Nvml nvml_;
  std::vector<Named> gpus_;
};

}  // namespace assay::power
