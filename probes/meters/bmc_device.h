// bmc_device: the power of this node from its BMC, in band, through the kernel's IPMI driver.
#pragma once

#include <string>

#include "probes/meters/session.h"

namespace assay {

/// A session with the BMC behind `device` (/dev/ipmi0): one DCMI Get Power Reading a call, `timeout_s` as the longest
/// wait. Throws Skip when the device is not there or not for this user; the session throws MeterFault.
MeterSession open_bmc_device(const std::string& device, double timeout_s);

}  // namespace assay
