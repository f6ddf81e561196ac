// parts_bars: bars from 0, so that their lengths compare.
#include "reports/figures/parts_bars.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

constexpr double kBarsLeft = 190, kBarsRight = kFigureWidth - 80, kBarsTop = 34, kBarPitch = 22, kBarHeight = 14;
constexpr std::size_t kLongestBarLabel = 28;

double sum_of(const PartsRow& row) { return std::accumulate(row.parts.begin(), row.parts.end(), 0.0); }

std::string part_class(std::size_t part) { return fmt::format("part-{}", part); }

}  // namespace

std::string legend_of_parts(const std::vector<std::string>& names, double height_of_last) {
  std::string svg;
  double x = 0;
  for (std::size_t part = 0; part < names.size(); ++part) {
    svg += svg_rect(x, 4, 10, part + 1 == names.size() ? height_of_last : 10, part_class(part)) +
           svg_text(x + 14, 13, "start", "mark", names[part]);
    x += 14 + text_width(names[part]) + 14;
  }
  return svg;
}

std::string parts_svg(const PartsBars& bars) {
  double most = 0;
  for (const auto& row : bars.rows) most = std::max(most, sum_of(row));
  if (!(most > 0)) return "";
  const double bottom = kBarsTop + kBarPitch * static_cast<double>(bars.rows.size());
  const Axis axis(0, most);
  const auto x = [&](double value) { return kBarsLeft + (kBarsRight - kBarsLeft) * axis.share(value); };
  std::string svg = svg_open(bars.title, bars.description, bottom + 42) + legend_of_parts(bars.names);
  const auto marks = axis.marks();
  const Scale scale = scale_for_marks(marks, "s");
  for (const double mark : marks) {
    svg += svg_line(x(mark), kBarsTop, x(mark), bottom, "grid") +
           svg_text(x(mark), bottom + 16, "middle", "mark", scale.number(mark));
  }
  double y = kBarsTop;
  for (const auto& row : bars.rows) {
    const double top = y + (kBarPitch - kBarHeight) / 2;
    svg += svg_text(kBarsLeft - 8, top + 11, "end", "label", end_of(row.label, kLongestBarLabel));
    double from = 0;
    for (std::size_t part = 0; part < row.parts.size(); ++part) {
      if (!(row.parts[part] > 0)) continue;
      svg += svg_rect(x(from), top, x(from + row.parts[part]) - x(from), kBarHeight, part_class(part));
      from = drawable(from + row.parts[part]);
    }
    svg += svg_text(x(from) + 6, top + 11, "start", "mark", for_people(from, "s"));
    y += kBarPitch;
  }
  svg += svg_line(kBarsLeft, kBarsTop, kBarsLeft, bottom, "axis") +
         svg_text((kBarsLeft + kBarsRight) / 2, bottom + 34, "middle", "mark", scale.unit + " " + bars.axis);
  return svg + "</svg>\n";
}

}  // namespace assay::figures
