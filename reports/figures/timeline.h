// timeline: who does what when, a row for each, time to the right from 0.
#pragma once

#include <string>
#include <vector>

namespace assay::figures {

/// One row: by activity, begin and end of each stretch in turn, in s.
struct TimelineRow {
  std::string label;
  std::vector<std::vector<double>> stretches;
};

/// A figure of rows.
struct Timeline {
  std::string title, description;
  std::string axis;                     ///< what 0 is: "since the step began"
  std::vector<std::string> activities;  ///< at most kMostParts; the last is drawn as a thin line below its row
  std::vector<TimelineRow> rows;        ///< at most kMostPartsRows, from the top
};

/// The figure as inline SVG, with a legend; empty without a stretch.
std::string timeline_svg(const Timeline& timeline);

}  // namespace assay::figures
