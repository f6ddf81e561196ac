// drive_commands: how the logs of a drive are read: by commands to the device, or from files.
#pragma once

#include <string>

#include "probes/health/drive_log.h"

namespace assay::health {

/// Asks the device: NVMe by the admin command Get Log Page, SATA by ATA PASS-THROUGH (16). Nothing but reading commands
/// is sent; an NVMe log is read so that pending events stay pending. Each command has 5 s. A device that is not there,
/// that may not be opened or that refuses the command is an absence with the cause.
DriveAnswer read_device_log(const std::string& device, DriveLog log);

/// Reads "<directory>/<device>.<log>", such as "nvme0.nvme-health": logs that were saved, or made by a test.
DriveLogReader saved_logs(std::string directory);

}  // namespace assay::health
