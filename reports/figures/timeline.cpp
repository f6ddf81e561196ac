// timeline: rectangles by time; what none of a row's covers is idle.
#include "reports/figures/timeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures/plot.h"
#include "reports/figures/scale.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

constexpr double kRowsLeft = 150, kRowsRight = kFigureWidth - 20, kRowsTop = 34, kPitch = 24, kBar = 13, kThin = 3;

std::string legend_of_rows(const std::vector<std::string>& names) {
  std::string svg;
  double x = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    svg += svg_rect(x, 4, 10, i + 1 == names.size() ? kThin : 10, fmt::format("part-{}", i)) +
           svg_text(x + 14, 13, "start", "mark", names[i]);
    x += 14 + text_width(names[i]) + 14;
  }
  return svg;
}

/// When the last stretch of all rows ends, in s.
double end_of_all(const Timeline& timeline) {
  double end_s = 0;
  for (const auto& row : timeline.rows) {
    for (const auto& stretches : row.stretches) {
      if (!stretches.empty()) end_s = std::max(end_s, std::ranges::max(stretches));
    }
  }
  return end_s;
}

}  // namespace

std::string timeline_svg(const Timeline& timeline) {
  const double end_s = end_of_all(timeline);
  if (!(end_s > 0)) return "";
  const double bottom = kRowsTop + kPitch * static_cast<double>(timeline.rows.size());
  const auto x = [&](double value) {
    return kRowsLeft + (kRowsRight - kRowsLeft) * std::clamp(value, 0.0, end_s) / end_s;
  };
  std::string svg = svg_open(timeline.title, timeline.description, bottom + 42) + legend_of_rows(timeline.activities);
  const auto marks = axis_marks(0, end_s);
  const Scale scale = scale_for_marks(marks, "s");
  for (const double mark : marks) {
    if (mark > end_s) continue;
    svg += svg_line(x(mark), kRowsTop, x(mark), bottom, "grid") +
           svg_text(x(mark), bottom + 16, "middle", "mark", scale.number(mark));
  }
  double y = kRowsTop;
  for (const auto& row : timeline.rows) {
    const double top = y + (kPitch - kBar - kThin) / 2;
    svg += svg_text(kRowsLeft - 8, top + 11, "end", "label", end_of(row.label, kLongestLabel));
    for (std::size_t activity = 0; activity < row.stretches.size(); ++activity) {
      const bool thin = activity + 1 == timeline.activities.size();
      const auto& stretches = row.stretches[activity];
      for (std::size_t i = 0; i + 1 < stretches.size(); i += 2) {
        if (stretches[i + 1] <= stretches[i]) continue;
        svg += svg_rect(x(stretches[i]), thin ? top + kBar : top, x(stretches[i + 1]) - x(stretches[i]),
                        thin ? kThin : kBar, fmt::format("part-{}", activity));
      }
    }
    y += kPitch;
  }
  svg += svg_line(kRowsLeft, kRowsTop, kRowsLeft, bottom, "axis") +
         svg_text((kRowsLeft + kRowsRight) / 2, bottom + 34, "middle", "mark", scale.unit + " " + timeline.axis);
  return svg + "</svg>\n";
}

}  // namespace assay::figures
