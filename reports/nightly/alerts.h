// alerts: flags for an alert manager and for web hooks, as JSON.
#pragma once

#include <string>

#include "orchestrator/drift/report.h"

namespace assay::nightly {

/// The body of POST /api/v2/alerts: an alert for each open flag (not for watched units), for each finding of the fleet
/// and one for overdue units. Labels have no figure, so that an alert keeps its identity from night to night; figures
/// are in the annotations. A simulated report gives alerts whose severity is "none" and that are labelled.
std::string alertmanager_alerts(const drift::DriftReport& report);

/// The same in the shape of a web hook of version 4, for receivers that take Alertmanager's.
std::string webhook_message(const drift::DriftReport& report);

}  // namespace assay::nightly
