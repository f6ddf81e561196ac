// course_chart: quantities of one unit over time, with marks at moments: temperatures of a soak, power of a step,
// traffic that adapters forwarded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/journal.h"
#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// One quantity at points of time in s since 1970; both lists are of one length, times rise.
struct CourseLine {
  std::string name;
  std::vector<double> times_s, values;
};

/// A moment, in s since 1970: when it was steady, when 90 % of a step were reached.
struct CourseMark {
  double time_s = 0;
  std::string words;
};

/// A figure of such lines on one axis.
struct CourseChart {
  std::string title, unit;  ///< unit of the values, base
  std::vector<CourseLine> lines;
  std::vector<CourseMark> marks;
  std::optional<double> zero_s = {};  ///< the moment that the axis counts from; nothing: the first reading
  std::string axis = "s since the first reading";
  bool dots = false;  ///< at each point, for few points far apart
};

/// The chart as inline SVG: each line with its name at its end, or, of more than eight lines, the lowest and the
/// highest named; a stretch of more than three times the usual distance of two points is a gap, at which a point
/// without `dots` may not show. Of many points the lowest and the highest of each of 360 parts of the time are drawn,
/// so that no peak is lost; of more than 256 lines the first. Points that are not finite are left out. Empty if no line
/// has two points.
std::string course_svg(const CourseChart& chart);

/// A line for each pair ("n01+n02"): the condition offloaded_share of each record of the steps of `results`, at the
/// begin of its attempt. Drawn with the first requirement of the same measurement; empty if no pair has two points. A
/// step with an attempt that exited and has no record in `records` is left out.
Chart offload_chart(const plan::Plan& plan, const judge::Journal& journal, const plan::Requirement& requirement,
                    const std::vector<const judge::Result*>& results,
                    const std::map<std::string, std::vector<Record>>& records);

}  // namespace assay::figures
