// in_band_power: the power of a node's processors, memory and GPUs together, by their energy counters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/meters/reading.h"
#include "probes/power/gpu_power.h"
#include "probes/power/rapl.h"

namespace assay::power {

/// The counters of all packages, dram zones and GPUs. A node without one of the two kinds is read without it.
class InBandPower {
 public:
  /// Opens RAPL under `powercap`, NVML and AMD SMI; throws Skip with the causes when none is there.
  InBandPower(const std::string& powercap, const std::string& nvml_library);

  /// The power since the last call, all counters together; nothing the first time. Throws MeterFault when a counter
  /// stops answering: a sum without it would be another boundary.
  std::optional<meters::MeterReading> read();
  /// The counters added up: "rapl package-0/package-0 package-0/dram, nvml GPU-8f2…".
  [[nodiscard]] std::string boundary() const;

 private:
  std::vector<EnergyCounter> counters_;
  std::vector<std::uint64_t> last_uj_;
  double last_s_ = 0;
};

}  // namespace assay::power
