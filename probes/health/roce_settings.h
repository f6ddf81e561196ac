// roce_settings: how a port of RDMA over Ethernet is set for lossless traffic and congestion; which RDMA ports NCCL
// would use, and how far each GPU is from its port.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/record.h"
#include "probes/health/nics.h"
#include "probes/health/pci_way.h"

namespace assay::health {

/// An RDMA port with a link.
struct Hca {
  std::string name;         ///< of the device: "mlx5_0"
  int port = 1;             ///< counted from 1
  std::string pci_address;  ///< of its function
};

/// Every RDMA port of `tree` that is ACTIVE and on PCI, sorted by name and port.
std::vector<Hca> active_hcas(const MachineTree& tree);

/// Whether `filter`, as NCCL_IB_HCA is written, leaves `hca`: prefixes in a row with commas, each with ":port" or
/// without; "=" before the row asks for whole names, "^" turns the choice round, "^=" does both. An empty one leaves
/// all. Source: NCCL, Environment Variables, NCCL_IB_HCA.
bool is_left_by(std::string_view filter, const Hca& hca);

/// The value of NCCL_IB_HCA in the text of /etc/nccl.conf; nothing if no line sets it.
std::optional<std::string> hca_filter_in(const std::string& configuration);

/// The nearest of `hcas` to the function at `gpu`, and the way to it; of equals the first. Nothing if there is none, or
/// the kernel shows no way to any of them.
struct NearestHca {
  Hca hca;
  PciWay way;
};
std::optional<NearestHca> nearest_hca(const MachineTree& tree, const std::string& gpu, const std::vector<Hca>& hcas);

/// Priorities of a port as the kernel's DCB interface shows them (IEEE 802.1Qbb, 802.1Qaz).
struct DcbSettings {
  std::optional<unsigned> lossless;  ///< priorities with flow control, one bit each
  /// Priority by DSCP, of those that the table has; nothing if it has none.
  std::optional<std::map<int, int>> priorities;
};

/// Those in the attributes of an answer to DCB_CMD_IEEE_GET.
DcbSettings parse_dcb(std::string_view attributes);

/// The conditions of host_configuration on a port `nic` of an Ethernet with an RDMA device; none on another port. A
/// tree that is not this machine has the attributes of an answer in its saved/NAME.dcb.
Values roce_settings(const MachineTree& tree, const Nic& nic);

}  // namespace assay::health
