// drive_log: a drive's own health data, decoded from its logs, which are read by commands to the device or from files.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "probes/core/record.h"
#include "probes/core/words.h"

namespace assay::health {

/// A log that a drive keeps of itself. The words are the names of saved logs.
enum class DriveLog {
  nvme_health,      ///< SMART / Health Information, log page 02h; 512 B
  nvme_errors,      ///< Error Information, log page 01h; up to 64 entries of 64 B, newest first
  sata_attributes,  ///< SMART READ DATA; 512 B
  sata_status,      ///< SMART RETURN STATUS; LBA mid and LBA high of the answer
  sata_media,       ///< Device Statistics, page 03h, rotating media; 512 B
  sata_errors,      ///< the same, page 04h, general errors
  sata_transport,   ///< the same, page 06h, transport
  sata_endurance,   ///< the same, page 07h, solid state
};

constexpr auto words_of(DriveLog) {
  using enum DriveLog;
  return std::to_array<Word<DriveLog>>({{nvme_health, "nvme-health"},
                                        {nvme_errors, "nvme-errors"},
                                        {sata_attributes, "sata-attributes"},
                                        {sata_status, "sata-status"},
                                        {sata_media, "sata-media"},
                                        {sata_errors, "sata-errors"},
                                        {sata_transport, "sata-transport"},
                                        {sata_endurance, "sata-endurance"}});
}

/// A log's bytes, or why there are none.
struct DriveAnswer {
  std::string bytes;
  std::string absence;  ///< empty if it answered
};

/// Reads one log of a device by its name in /dev ("nvme0", "sda").
using DriveLogReader = std::function<DriveAnswer(const std::string& device, DriveLog log)>;

/// Values reported by one drive, by the names of health_drive's metrics and conditions.
struct DriveState {
  std::map<std::string_view, double> metrics;
  std::map<std::string_view, Value> conditions;
  std::string absence;  ///< why its health is not known; empty if it is
};

/// The health of the NVMe controller `device`. Without log page 02h there is no health; the error log is optional.
DriveState read_nvme_state(const DriveLogReader& read, const std::string& device);

/// The health of the SATA drive `device`. Counters come from the Device Statistics log, which ACS-3 defines; where a
/// drive has none, from the vendors' attributes of the same meaning (5, 187, 199). Without SMART there is no health.
DriveState read_sata_state(const DriveLogReader& read, const std::string& device);

/// Asks the device: NVMe by the admin command Get Log Page, SATA by ATA PASS-THROUGH (16). Nothing but reading commands
/// is sent; an NVMe log is read so that pending events stay pending. Each command has 5 s. A device that is not there,
/// that may not be opened or that refuses the command is an absence with the cause.
DriveAnswer read_device_log(const std::string& device, DriveLog log);

/// Reads "<directory>/<device>.<log>", such as "nvme0.nvme-health": logs that were saved, or made by a test.
DriveLogReader saved_logs(std::string directory);

}  // namespace assay::health
