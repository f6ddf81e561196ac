// nics: network ports with hardware behind them, Ethernet and InfiniBand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/units.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// One port; unreported values are absent.
struct Nic {
  std::string name;  ///< of its network interface ("eth0"), else of its RDMA port ("mlx5_0", "mlx5_0/2")
  bool up = false;   ///< whether it has a link
  std::optional<BytesPerSecond> link_rate = {};      ///< one direction; only while the link is up
  std::optional<BytesPerSecond> link_rate_max = {};  ///< of the fastest mode that port and driver support
  std::optional<std::string> driver = {}, firmware = {}, mac_address = {}, rdma_device = {}, guid = {},
                             pci_address = {};
};

/// Every port under sys/class/net with a device behind it, then every port under sys/class/infiniband whose device has
/// no network interface; sorted by name within each. Virtual functions of a card that this machine itself has are left
/// out: they come and go with the configuration. Firmware is asked of the kernel (ETHTOOL_GDRVINFO) when `tree` is this
/// machine and sysfs does not report it.
std::vector<Nic> read_nics(const MachineTree& tree);

/// The names in a row with commas, such as "eth0,eth1". Throws BadParameter if one is empty, holds a slash or none is
/// there.
std::vector<std::string> port_names(const std::string& row);

}  // namespace assay::health
