// drives: block devices with hardware behind them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/units.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// One drive; unreported values are absent.
struct Drive {
  std::string name;  ///< of the block device: "nvme0n1"
  std::optional<Bytes> size = {};
  std::optional<bool> rotational = {};
  std::optional<std::string> model, serial, firmware;
  std::optional<std::string> pci_address;  ///< of its controller
};

/// Every drive under sys/block, sorted by name. Left out: devices without hardware (loop, ram, zram, device mapper,
/// md), the hidden paths of a multipath NVMe drive, optical drives, and removable drives without a medium.
std::vector<Drive> read_drives(const MachineTree& tree);

}  // namespace assay::health
