// prometheus: figures and flags for a monitoring system: text, alerts and web hooks as JSON, and a dashboard of
// Grafana.
#pragma once

#include <string>

#include "orchestrator/drift/report.h"
#include "reports/nightly/nights.h"

namespace assay::nightly {

/// For node_exporter's textfile collector: the classic text format, without times. Counts of nodes and flags, whether
/// nothing was judged, the longest wait, the start of the newest sweep, and the ratio of each flagged level. Metrics of
/// a simulation have the label simulated="true".
std::string textfile(const drift::DriftReport& report, const std::string& last_started);

/// OpenMetrics with times, ended by "# EOF", for `promtool tsdb create-blocks-from openmetrics`: every nightly figure
/// of the last `most` nights, at the midnight UTC that ends its date.
history::Result<std::string> open_metrics(const history::History& history, drift::Date last, std::size_t most);

/// A label's value with backslash, quote and line feed escaped, and terminal control characters replaced.
std::string label_value(std::string_view text);

/// The body of POST /api/v2/alerts: an alert for each open flag (not for watched units), for each finding of the fleet,
/// one for overdue units, and one where nothing was judged. Labels have no figure, so that an alert keeps its identity
/// from night to night; figures are in the annotations. A simulated report gives alerts whose severity is "none" and
/// that are labelled.
std::string alertmanager_alerts(const drift::DriftReport& report);

/// The same in the shape of a web hook of version 4, for receivers that take Alertmanager's.
std::string webhook_message(const drift::DriftReport& report);

/// The dashboard as JSON, without an id; its data source is a variable.
std::string grafana_dashboard();

/// The provider (provisioning/dashboards/assay.yaml) that loads dashboards from `folder`.
std::string grafana_provider(const std::string& folder);

}  // namespace assay::nightly
