// roce_settings: how a port of RDMA over Ethernet is set for lossless traffic and congestion.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "probes/core/record.h"
#include "probes/health/nics.h"

namespace assay::health {

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
