// bmc_device: the power of this node from its BMC, in band, through the kernel's IPMI driver.
#pragma once

#include <optional>
#include <string>

#include "probes/meters/registers.h"
#include "probes/meters/session.h"

namespace assay::meters {

/// A session with the BMC behind `device` (/dev/ipmi0): one DCMI Get Power Reading a call, `timeout_s` as the longest
/// wait. Throws Skip when the device is not there or not for this user; the session throws MeterFault.
MeterSession open_bmc_device(const std::string& device, double timeout_s);

/// The power limit of the BMC behind `device` (DCMI Get Power Limit); nothing if none is in force. Throws Skip as
/// open_bmc_device() does, MeterFault when the BMC does not answer within `timeout_s` or refuses.
std::optional<DcmiLimit> bmc_power_limit(const std::string& device, double timeout_s);

}  // namespace assay::meters
