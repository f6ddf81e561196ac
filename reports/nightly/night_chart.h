// night_chart: one metric of one unit over nights, as inline SVG.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/drift/report.h"
#include "reports/nightly/nights.h"

namespace assay::nightly {

/// Dots are nightly figures, crosses re-tests, the thin line the median of comparable units (from four on), the dashed
/// line the signed acceptance. The band is what the flag's reference expects, three deviations each way, moved with the
/// median of the night; without a flag there is none. Upright lines are the onset of the flag and the events.
std::string night_chart(const SeriesTrend& series, const drift::Flag* flag, const std::vector<drift::Event>& events,
                        drift::Date from, drift::Date to);

}  // namespace assay::nightly
