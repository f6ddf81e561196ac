// course_chart: lines over time on one axis.
#include "reports/figures/course_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "reports/figures/plot.h"
#include "reports/figures/scale.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

constexpr double kCourseLeft = 70, kCourseRight = kFigureWidth - 110, kCourseTop = 30, kCourseBottom = 230,
                 kCourseHeight = 275, kBetweenNames = 13;
constexpr std::size_t kCourseParts = 360, kMostNamedLines = 8;
constexpr double kGapFactor = 3;

/// The points of a line that are drawn: of each part of the time its lowest and its highest, in order of time.
CourseLine thinned_course(const CourseLine& line, double begin_s, double end_s) {
  if (line.values.size() <= 2 * kCourseParts) return line;
  CourseLine few{.name = line.name, .times_s = {}, .values = {}};
  const double part_s = (end_s - begin_s) / static_cast<double>(kCourseParts);
  for (std::size_t i = 0; i < line.values.size();) {
    const double part = std::floor((line.times_s[i] - begin_s) / part_s);
    std::size_t low = i, high = i;
    for (; i < line.values.size() && std::floor((line.times_s[i] - begin_s) / part_s) == part; ++i) {
      if (line.values[i] < line.values[low]) low = i;
      if (line.values[i] > line.values[high]) high = i;
    }
    for (const std::size_t one : {std::min(low, high), std::max(low, high)}) {
      if (!few.times_s.empty() && few.times_s.back() == line.times_s[one]) continue;
      few.times_s.push_back(line.times_s[one]);
      few.values.push_back(line.values[one]);
    }
  }
  return few;
}

/// Between two neighbours, as they usually are.
double usual_distance_s(const CourseLine& line) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < line.times_s.size(); ++i) distances.push_back(line.times_s[i] - line.times_s[i - 1]);
  std::ranges::nth_element(distances, distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2));
  return distances[distances.size() / 2];
}

class CourseDrawing {
 public:
  explicit CourseDrawing(const CourseChart& chart) : chart_(chart) {
    for (const auto& line : chart.lines) {
      if (line.times_s.size() < 2) continue;
      begin_s_ = std::min(begin_s_, line.times_s.front());
      end_s_ = std::max(end_s_, line.times_s.back());
      const auto [low, high] = std::ranges::minmax(line.values);
      low_ = std::min(low_, low);
      high_ = std::max(high_, high);
    }
    if (!(begin_s_ < end_s_)) return;
    const double margin = high_ > low_ ? 0.06 * (high_ - low_) : std::max(1.0, 0.1 * std::abs(high_));
    low_ -= margin;
    high_ += margin;
  }

  [[nodiscard]] bool is_empty() const { return !(begin_s_ < end_s_); }

  [[nodiscard]] std::string take() const {
    std::string svg = svg_open(chart_.title, "Quantities over time.", kCourseHeight);
    svg += axes();
    for (const auto& line : chart_.lines)
      if (line.times_s.size() >= 2) svg += path_of(thinned_course(line, begin_s_, end_s_));
    return svg + names() + marks() + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(double time_s) const {
    return kCourseLeft + (kCourseRight - kCourseLeft) * std::clamp((time_s - begin_s_) / (end_s_ - begin_s_), 0.0, 1.0);
  }
  [[nodiscard]] double y(double value) const {
    return kCourseBottom - (kCourseBottom - kCourseTop) * std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
  }

  [[nodiscard]] std::string path_of(const CourseLine& line) const {
    const double most_s = kGapFactor * usual_distance_s(line);
    std::string path;
    for (std::size_t i = 0; i < line.values.size(); ++i) {
      const bool moves = i == 0 || line.times_s[i] - line.times_s[i - 1] > most_s;
      path += fmt::format("{}{:.2f} {:.2f}", moves ? "M" : "L", x(line.times_s[i]), y(line.values[i]));
    }
    return fmt::format("<path class=\"curve\" d=\"{}\"/>\n", path);
  }

  /// Names at the ends of lines, moved apart if they would overlap.
  [[nodiscard]] std::string names() const {
    std::vector<std::pair<double, std::string>> ends;
    for (const auto& line : chart_.lines)
      if (line.times_s.size() >= 2) ends.emplace_back(y(line.values.back()), line.name);
    std::ranges::sort(ends);
    if (ends.size() > kMostNamedLines) ends = {ends.front(), ends.back()};
    std::string svg;
    double last = -kBetweenNames;
    for (const auto& [height, name] : ends) {
      last = std::max(height, last + kBetweenNames);
      svg += svg_text(kCourseRight + 6, last + 4, "start", "mark", end_of(name, 18));
    }
    return svg;
  }

  [[nodiscard]] std::string marks() const {
    std::string svg;
    for (const auto& mark : chart_.marks) {
      if (mark.time_s < begin_s_ || mark.time_s > end_s_) continue;
      const bool right = x(mark.time_s) < (kCourseLeft + kCourseRight) / 2;
      svg += svg_line(x(mark.time_s), kCourseTop, x(mark.time_s), kCourseBottom, "limit") +
             svg_text(x(mark.time_s) + (right ? 4 : -4), kCourseTop - 4, right ? "start" : "end", "limit-label",
                      mark.words);
    }
    return svg;
  }

  [[nodiscard]] std::string axes() const {
    const auto values = axis_marks(low_, high_);
    const Scale scale = scale_for_marks(values, chart_.unit);
    std::string svg = svg_line(kCourseLeft, kCourseTop, kCourseLeft, kCourseBottom, "axis") +
                      svg_line(kCourseLeft, kCourseBottom, kCourseRight, kCourseBottom, "axis");
    for (const double mark : values) {
      if (mark < low_ || mark > high_) continue;
      svg += svg_line(kCourseLeft, y(mark), kCourseRight, y(mark), "grid") +
             svg_text(kCourseLeft - 8, y(mark) + 4, "end", "mark", scale.number(mark));
    }
    const double zero_s = chart_.zero_s.value_or(begin_s_);
    for (const double mark : axis_marks(begin_s_ - zero_s, end_s_ - zero_s)) {
      if (zero_s + mark < begin_s_ || zero_s + mark > end_s_) continue;
      svg += svg_line(x(zero_s + mark), kCourseBottom, x(zero_s + mark), kCourseBottom + 5, "axis") +
             svg_text(x(zero_s + mark), kCourseBottom + 18, "middle", "mark", fmt::format("{:g}", mark));
    }
    svg += svg_text(0, kCourseTop - 14, "start", "mark", "in " + scale.unit);
    return svg + svg_text((kCourseLeft + kCourseRight) / 2, kCourseBottom + 38, "middle", "mark", chart_.axis);
  }

  const CourseChart& chart_;
  double begin_s_ = std::numeric_limits<double>::max(), end_s_ = std::numeric_limits<double>::lowest();
  double low_ = std::numeric_limits<double>::max(), high_ = std::numeric_limits<double>::lowest();
};

}  // namespace

std::string course_svg(const CourseChart& chart) {
  const CourseDrawing drawing(chart);
  return drawing.is_empty() ? "" : drawing.take();
}

}  // namespace assay::figures
