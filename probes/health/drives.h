// drives: block devices with hardware behind them, and the paths to NVMe storage over a fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/units.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// One way to a namespace: a controller and its state for the namespace.
struct NvmePath {
  std::string controller;                ///< "nvme0"
  std::string transport, address;        ///< "pcie" and "0000:5e:00.0", "tcp" and "traddr=10.0.0.1,trsvcid=4420"
  std::string state;                     ///< of the controller: "live", "connecting", "dead", …
  std::optional<std::string> ana_state;  ///< "optimized", "non-optimized", "inaccessible", … where ANA is used

  /// Whether I/O can go this way: the controller is live and the namespace not out of its reach.
  [[nodiscard]] bool usable() const;
  /// Whether it is one of the best ways: usable, and not said to be slower than another.
  [[nodiscard]] bool optimized() const;
};

/// One NVMe drive or subsystem, its namespaces and the ways to them.
struct NvmeDrive {
  std::string name;  ///< of the first namespace's block device ("nvme0n1"); of the controller if it has none
  std::vector<std::string> controllers;
  std::vector<std::string> namespaces;  ///< block devices
  std::vector<NvmePath> paths;          ///< one for each controller and namespace; for each controller without any
  std::optional<std::string> model, serial, firmware, pci_address;

  /// Whether more than one controller leads to it, or one over a fabric.
  [[nodiscard]] bool many_ways() const;
};

/// Every NVMe drive under sys/class/nvme, sorted by name.
std::vector<NvmeDrive> read_nvme_drives(const MachineTree& tree);

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
