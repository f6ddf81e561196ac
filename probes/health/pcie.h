// pcie: the PCIe links of accelerators, network cards and NVMe drives, negotiated and possible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/record.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// A link's rate and width; unreported values are absent.
struct PcieLink {
  std::optional<double> transfers_per_s;  ///< of one lane: 32 GT/s is 3.2e10
  std::optional<std::int64_t> width;      ///< lanes
};

/// The link of the function at `directory` of `tree`; `which` is "current" (as negotiated) or "max" (its own maximum).
PcieLink read_pcie_link(const MachineTree& tree, const std::string& directory, const char* which);

/// One PCI function of interest.
struct PcieDevice {
  std::string address;                ///< "0000:1b:00.0"
  Subject subject;                    ///< gpu, nic or drive; its id is the address where nothing names it
  std::optional<std::string> pci_id;  ///< vendor and device: "10de:2330"
  std::optional<std::string> driver;
  std::optional<std::int64_t> numa_node;
  bool accelerator = false;   ///< a 3D controller or processing accelerator
  PcieLink current, maximum;  ///< as negotiated; the device's own maximum

  /// Whether the link is slower or narrower than the device's maximum; nothing if neither can be compared.
  [[nodiscard]] std::optional<bool> degraded() const;
};

/// Errors of a function's link since boot, as the kernel reports them (Advanced Error Reporting); absent if it does
/// not.
struct PcieErrors {
  std::optional<std::int64_t> corrected, nonfatal, fatal;

  /// Those that are not corrected, of both classes.
  [[nodiscard]] std::optional<std::int64_t> uncorrected() const;
};

/// Those of the function at `address`.
PcieErrors read_pcie_errors(const MachineTree& tree, const std::string& address);

/// Every display, 3D, processing-accelerator, network and NVMe function under sys/bus/pci/devices, sorted by address.
/// `known` names functions by address ("0000:5e:00.0" -> nic eth0). Virtual functions are left out: they have no link
/// of their own.
std::vector<PcieDevice> read_pcie_devices(const MachineTree& tree, const std::map<std::string, Subject>& known);

}  // namespace assay::health
