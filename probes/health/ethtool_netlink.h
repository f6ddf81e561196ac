// ethtool_netlink: state of a network port by ethtool's netlink family: error correction and pluggable modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::health {

/// Names and values of ETHTOOL_GSTATS, in the driver's order; empty if the interface is not there or has none. Values
/// beyond 63 bits are left out.
std::vector<std::pair<std::string, std::int64_t>> ethtool_counters(const std::string& interface);

/// Counters of forward error correction since the driver was loaded; counters that the driver lacks are absent.
struct FecStatistics {
  std::optional<std::uint64_t> corrected_blocks, uncorrectable_blocks, corrected_bits;
  std::vector<std::uint64_t> corrected_by_lane;  ///< bits where the driver counts bits, else blocks
  std::string absence;                           ///< why nothing is known; empty if the kernel answered
};

/// 128 bytes of a module's memory, or why there are none.
struct ModuleAnswer {
  std::string bytes;
  std::string absence;
};

/// One 128-byte half of a module's memory map: the lower half, or the upper half of a page.
struct ModulePlace {
  bool upper = false;
  std::uint8_t page = 0;
};

/// Asks by ETHTOOL_MSG_FEC_GET; Linux 5.13 or newer.
FecStatistics fec_statistics(const std::string& interface);

/// Asks by ETHTOOL_MSG_MODULE_EEPROM_GET at I2C address 50h; needs CAP_NET_ADMIN and Linux 5.13 or newer. For drivers
/// that have only the older ETHTOOL_GMODULEEEPROM the kernel translates.
ModuleAnswer module_memory(const std::string& interface, ModulePlace place);

/// The counters in the attributes of an answer to ETHTOOL_MSG_FEC_GET.
FecStatistics parse_fec(std::string_view attributes);

}  // namespace assay::health
