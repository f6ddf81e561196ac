// link_counters: the early signs of a bad link among the thousands of counters that drivers keep.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probes/health/ethtool_netlink.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// A port's counters, by the names of health_links' metrics.
struct LinkCounters {
  std::map<std::string_view, double> totals;  ///< since the driver was loaded
  std::optional<double> corrected;            ///< by forward error correction, since the driver was loaded
  bool corrects_bits = false;                 ///< `corrected` counts bits; else blocks
  std::vector<double> corrected_by_lane;
};

/// The counters of a driver by name, as ETHTOOL_GSTATS gives them.
using NamedCounters = std::span<const std::pair<std::string, std::int64_t>>;

/// Those of the network port `interface`: losses of carrier and CRC errors from /sys, error correction from `fec` and,
/// where that has none, from the driver's own counters: mlx5 ("rx_corrected_bits_phy", "rx_err_lane_0_phy",
/// "rx_pcs_symbol_err_phy") and bnxt ("rx_fec_corrected_blocks", "rx_fec_uncorrectable_blocks", "rx_corrected_bits",
/// "rx_pcs_symbol_err").
LinkCounters read_link_counters(const MachineTree& tree, const std::string& interface, NamedCounters named,
                                const FecStatistics& fec);

/// Those of every RDMA port, by its name "mlx5_0/1": the PortCounters of the InfiniBand Architecture, and how often the
/// other side of a connection was not ready.
std::map<std::string, LinkCounters> read_rdma_counters(const MachineTree& tree);

}  // namespace assay::health
