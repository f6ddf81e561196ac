// agreement_chart: differences between meters of one boundary, over their power.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::figures {

/// Two meters at one level of load, in W; `reference_w` is above 0.
struct AgreementPoint {
  std::string name;  ///< subject of both: "n01", "rack r01"
  double meter_w = 0, reference_w = 0;
};

/// A figure of many such points.
struct AgreementChart {
  std::string title;
  std::vector<AgreementPoint> points;
  std::optional<double> low, high;  ///< limits on meter over reference
};

/// The chart as inline SVG: a dot for each point within the limits, a cross and its name for one beyond, at its power
/// and its ratio less 1; the limits as lines. At most 24 names are written. Empty without points.
std::string agreement_svg(const AgreementChart& chart);

}  // namespace assay::figures
