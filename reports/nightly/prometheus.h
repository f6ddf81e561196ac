// prometheus: figures for a monitoring system, as text.
#pragma once

#include <string>
#include <vector>

#include "reports/nightly/nights.h"

namespace assay::nightly {

/// For node_exporter's textfile collector: the classic text format, without times. Counts of nodes and flags, the
/// longest wait, the start of the newest sweep, and the ratio of each flagged level. Metrics of a simulation have the
/// label simulated="true".
std::string textfile(const drift::DriftReport& report, const std::string& last_started);

/// OpenMetrics with times, ended by "# EOF", for `promtool tsdb create-blocks-from openmetrics`: every nightly figure
/// of the last `most` nights, at the midnight UTC that ends its date.
history::Result<std::string> open_metrics(const history::History& history, drift::Date last, std::size_t most);

/// A label's value with backslash, quote and line feed escaped, and terminal control characters replaced.
std::string label_value(std::string_view text);

}  // namespace assay::nightly
