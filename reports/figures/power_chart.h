// power_chart: power of racks over time, one on another, against their budget, with the loads meanwhile; differences
// between meters of one boundary, over their power.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::figures {

/// The power of one rack, W, at points of time in s since 1970; both lists are of one length, times rise.
struct PowerBand {
  std::string name;
  std::vector<double> times_s, watts;
};

/// Something that happened from one time to another, in s since 1970.
struct PowerEvent {
  double begin_s = 0, end_s = 0;
  std::string words;
};

/// A stacked figure of power.
struct PowerChart {
  std::string title;
  std::vector<PowerBand> bands;    ///< from the bottom
  std::vector<PowerEvent> events;  ///< shaded, with a number each
  std::optional<double> budget_w;  ///< a line
  std::string budget_words;
};

/// The chart as inline SVG; empty if no band has two points of time. Many points are drawn as the greatest sum of each
/// of 360 parts of the time, so that no peak is lost. A band without a reading at a time leaves a gap of the whole.
std::string power_svg(const PowerChart& chart);

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
