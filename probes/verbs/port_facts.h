// port_facts: the RDMA ports of a machine, as sysfs reports them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/units.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::verbs {

/// One entry of a port's GID table.
struct Gid {
  int index = 0;
  std::string value;      ///< eight groups of four hexadecimal digits, "fe80:0000:…"
  std::string type;       ///< "RoCE v2", "IB/RoCE v1"; empty if the kernel does not say
  std::string interface;  ///< the network interface it belongs to; empty on InfiniBand
};

/// One port; unreported values are absent or empty.
struct PortFacts {
  std::string device;                       ///< "mlx5_0", "rxe0"
  int port = 1;                             ///< counted from 1
  std::string state;                        ///< "ACTIVE", "DOWN", "INIT", "ARMED"
  std::string physical_state;               ///< "LinkUp", "Disabled", "Polling"
  std::string link_layer;                   ///< "Ethernet", "InfiniBand"
  std::optional<BytesPerSecond> rate = {};  ///< signalling rate of one direction as the port reports it
  std::optional<int> width = {};            ///< lanes
  std::string speed;                        ///< of a lane: "NDR", "EDR"
  std::string firmware, board, node_guid, pci_address, interface;
  std::optional<int> numa_node = {};
  std::optional<int> lid = {};  ///< only if it is not 0
  std::vector<Gid> gids;        ///< entries that are not empty, by index

  /// "mlx5_0/1": how a port is written in parameters and records.
  [[nodiscard]] std::string name() const { return device + "/" + std::to_string(port); }
  /// Whether packets can flow.
  [[nodiscard]] bool active() const { return state == "ACTIVE"; }
};

/// Every port under sys/class/infiniband, sorted by device and port.
std::vector<PortFacts> read_ports(const MachineTree& tree);

/// The port's `rate`, "400 Gb/sec (4X NDR)": rate, lanes and speed, each if it is there.
struct RateWords {
  std::optional<BytesPerSecond> rate = {};
  std::optional<int> width = {};
  std::string speed;
};
RateWords parse_rate(std::string_view text);

/// A GID as people write addresses: "10.9.0.1" for one that holds an IPv4 address, else IPv6 as RFC 5952 has it.
/// `value` as sysfs writes it; returned unchanged when it is none.
std::string gid_words(const std::string& value);

/// Whether a GID holds an IPv4 address (::ffff:a.b.c.d).
bool holds_ipv4(const std::string& value);

/// Whether a GID is link-local (fe80::/10).
bool is_link_local(const std::string& value);

}  // namespace assay::verbs
