// redfish_resource: the numbers of one Redfish resource, by the property names of DMTF's schemas.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "probes/meters/reading.h"

namespace assay::meters {

/// The readings of `resource` (EnvironmentMetrics, PowerDistributionMetrics, Outlet, PowerSupplyMetrics,
/// CoolantConnector, Sensor, LeakDetector, and PowerControl of the older Power), which came from `path`. A property
/// that is null, or whose sensor is absent or disabled, is an absent reading. ReadingUnits are read. Throws MeterFault
/// when it has none of the known properties, or a unit that is not known.
std::vector<MeterReading> redfish_readings(const nlohmann::json& resource, const std::string& path);

/// The readings of several resources of one chassis with those of its power supplies added up: power, output, energy
/// and current; of voltage and frequency the first one is taken. A sum in which one supply has none is absent, because
/// one supply is half of a node. If a resource of the whole states a quantity, it is taken and the sum is left out.
std::vector<MeterReading> with_supplies_added(std::vector<MeterReading> readings);

/// Makes the detectors of one answer one reading of how many there are, and one of how many report a leak.
void join_leak_detectors(std::vector<MeterReading>& answer);

/// "PT1M30S" of ISO 8601 in s; nothing if it is no such duration.
std::optional<double> iso_duration_s(std::string_view text);

/// "2026-01-05T06:37:41Z", also with a fraction or an offset such as +01:00, in s since 1970; nothing for another text.
std::optional<double> iso_time_s(std::string_view text);

}  // namespace assay::meters
