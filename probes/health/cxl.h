// cxl: the CXL memory devices of a machine, their links and their own account of their health.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/health/pcie.h"

namespace assay::health {

/// A device's answer to Get Health Info (CXL 2.0, 8.2.9.5.3.1).
struct CxlHealth {
  std::string states;       ///< those that are not normal: "maintenance needed, media data lost"; empty if all is
  std::int64_t faults = 0;  ///< how many of them are no mere warning
  std::optional<double> life_used;  ///< share; nothing if the device does not report it
  std::optional<int> temperature_c;
  std::int64_t dirty_shutdowns = 0;
  std::int64_t corrected_volatile = 0, corrected_persistent = 0;  ///< errors, as the device counts them
};

/// One device: "mem0".
struct CxlMemory {
  std::string name;
  std::optional<std::int64_t> volatile_b, persistent_b;
  std::optional<std::string> serial, firmware, pci_address;
  std::optional<std::int64_t> numa_node;  ///< of the CPUs nearest to it
  PcieLink current, maximum;
  PcieErrors errors;
  std::optional<CxlHealth> health;
  std::string health_absent;  ///< why there is none

  /// Whether its link has fewer lanes, or a lower rate, than the device is made for; nothing if it cannot be compared.
  [[nodiscard]] std::optional<bool> narrow() const;
  [[nodiscard]] std::optional<bool> slow() const;
};

/// Every device under sys/bus/cxl/devices, by name. This machine's are asked for their health (/dev/cxl, root); in
/// another tree the answer is the file saved/mem0.health.
std::vector<CxlMemory> read_cxl_memory(const MachineTree& tree);

/// The 18 bytes of an answer; nothing if there are fewer.
std::optional<CxlHealth> parse_cxl_health(std::string_view answer);

}  // namespace assay::health
