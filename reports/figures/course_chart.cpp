// course_chart: lines over time on one axis.
#include "reports/figures/course_chart.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "probes/core/utc_time.h"
#include "reports/figures/axis.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

constexpr double kCourseLeft = 70, kCourseRight = kFigureWidth - 110, kCourseTop = 30, kCourseBottom = 230,
                 kCourseHeight = 275, kBetweenNames = 13;
constexpr std::size_t kCourseParts = 360, kMostNamedLines = 8, kMostLines = 256;
constexpr double kGapFactor = 3;

/// The points that can be drawn of the lines that have two.
std::vector<CourseLine> drawable_lines(const CourseChart& chart) {
  std::vector<CourseLine> lines;
  for (const auto& line : chart.lines) {
    CourseLine one{.name = line.name};
    for (std::size_t i = 0; i < std::min(line.times_s.size(), line.values.size()); ++i) {
      if (!std::isfinite(line.times_s[i]) || !std::isfinite(line.values[i])) continue;
      one.times_s.push_back(drawable(line.times_s[i]));
      one.values.push_back(drawable(line.values[i]));
    }
    if (one.times_s.size() >= 2 && lines.size() < kMostLines) lines.push_back(std::move(one));
  }
  return lines;
}

/// The points of a line that are drawn: of each part of the time its lowest and its highest, in order of time.
CourseLine thinned_course(const CourseLine& line, const Axis& times) {
  if (line.values.size() <= 2 * kCourseParts) return line;
  CourseLine few{.name = line.name};
  const auto part_of = [&](double time_s) {
    return std::floor(times.share(time_s) * static_cast<double>(kCourseParts));
  };
  for (std::size_t i = 0; i < line.values.size();) {
    const double part = part_of(line.times_s[i]);
    std::size_t low = i, high = i;
    for (; i < line.values.size() && part_of(line.times_s[i]) == part; ++i) {
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
  explicit CourseDrawing(const CourseChart& chart) : chart_(chart), lines_(drawable_lines(chart)) {
    std::vector<double> values;
    for (const auto& line : lines_) {
      begin_s_ = std::min(begin_s_, line.times_s.front());
      end_s_ = std::max(end_s_, line.times_s.back());
      const auto [low, high] = std::ranges::minmax(line.values);
      values.insert(values.end(), {low, high});
    }
    if (is_empty()) return;
    times_ = Axis(begin_s_, end_s_);
    values_ = Axis::around(values, 0.06, 0.1);
  }

  [[nodiscard]] bool is_empty() const { return !(begin_s_ < end_s_); }

  [[nodiscard]] std::string take() const {
    std::string svg = svg_open(chart_.title, "Quantities over time.", kCourseHeight);
    svg += axes();
    for (const auto& line : lines_) svg += path_of(thinned_course(line, times_));
    return svg + names() + marks() + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(double time_s) const {
    return kCourseLeft + (kCourseRight - kCourseLeft) * times_.share(time_s);
  }
  [[nodiscard]] double y(double value) const {
    return kCourseBottom - (kCourseBottom - kCourseTop) * values_.share(value);
  }

  [[nodiscard]] std::string path_of(const CourseLine& line) const {
    const double most_s = kGapFactor * usual_distance_s(line);
    std::string path, dots;
    for (std::size_t i = 0; i < line.values.size(); ++i) {
      const bool moves = i == 0 || line.times_s[i] - line.times_s[i - 1] > most_s;
      const auto at_x = fmt::format("{:.2f}", x(line.times_s[i])), at_y = fmt::format("{:.2f}", y(line.values[i]));
      path += fmt::format("{}{} {}", moves ? "M" : "L", at_x, at_y);
      if (chart_.dots) dots += fmt::format("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"2.5\"/>\n", at_x, at_y);
    }
    return fmt::format("<path class=\"curve\" d=\"{}\"/>\n{}", path, dots);
  }

  /// Names at the ends of lines, moved apart if they would overlap.
  [[nodiscard]] std::string names() const {
    std::vector<std::pair<double, std::string>> ends;
    for (const auto& line : lines_) ends.emplace_back(y(line.values.back()), line.name);
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
      if (!(mark.time_s >= begin_s_ && mark.time_s <= end_s_)) continue;
      const bool right = x(mark.time_s) < (kCourseLeft + kCourseRight) / 2;
      svg += svg_line(x(mark.time_s), kCourseTop, x(mark.time_s), kCourseBottom, "limit") +
             svg_text(x(mark.time_s) + (right ? 4 : -4), kCourseTop - 4, right ? "start" : "end", "limit-label",
                      mark.words);
    }
    return svg;
  }

  [[nodiscard]] std::string axes() const {
    const auto values = values_.marks();
    const Scale scale = scale_for_marks(values, chart_.unit);
    std::string svg = svg_line(kCourseLeft, kCourseTop, kCourseLeft, kCourseBottom, "axis") +
                      svg_line(kCourseLeft, kCourseBottom, kCourseRight, kCourseBottom, "axis");
    for (const double mark : values) {
      svg += svg_line(kCourseLeft, y(mark), kCourseRight, y(mark), "grid") +
             svg_text(kCourseLeft - 8, y(mark) + 4, "end", "mark", scale.number(mark));
    }
    const double zero_s = drawable(chart_.zero_s.value_or(begin_s_));
    for (const double mark : Axis(begin_s_ - zero_s, end_s_ - zero_s).marks()) {
      if (zero_s + mark < begin_s_ || zero_s + mark > end_s_) continue;
      svg += svg_line(x(zero_s + mark), kCourseBottom, x(zero_s + mark), kCourseBottom + 5, "axis") +
             svg_text(x(zero_s + mark), kCourseBottom + 18, "middle", "mark", fmt::format("{:g}", mark));
    }
    svg += svg_text(0, kCourseTop - 14, "start", "mark", scale.unit.empty() ? chart_.title : "in " + scale.unit);
    return svg + svg_text((kCourseLeft + kCourseRight) / 2, kCourseBottom + 38, "middle", "mark", chart_.axis);
  }

  const CourseChart& chart_;
  std::vector<CourseLine> lines_;
  double begin_s_ = std::numeric_limits<double>::max(), end_s_ = std::numeric_limits<double>::lowest();
  Axis times_, values_;
};

/// When the attempts of each of `steps` that exited began, in s since 1970, in the order of the journal.
std::map<std::string, std::vector<double>> begins_of(const judge::Journal& journal,
                                                     const std::set<std::string>& steps) {
  std::map<std::string, std::vector<double>> begins;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra() || attempt.outcome != AttemptOutcome::exited || !steps.contains(attempt.step)) continue;
    const auto begin = utc_time(attempt.begin);
    if (begin) begins[attempt.step].push_back(std::chrono::duration<double>(begin->time_since_epoch()).count());
  }
  return begins;
}

}  // namespace

std::string course_svg(const CourseChart& chart) {
  const CourseDrawing drawing(chart);
  return drawing.is_empty() ? "" : drawing.take();
}

Chart offload_chart(const plan::Plan& plan, const judge::Journal& journal, const plan::Requirement& requirement,
                    const std::vector<const judge::Result*>& results,
                    const std::map<std::string, std::vector<Record>>& records) {
  const auto steps = steps_of(results);
  const auto is_recorded = [&](const std::string& step) {
    const auto found = records.find(step);
    return found != records.end() && !found->second.empty() && number_of(found->second.front(), "offloaded_share");
  };
  if (!is_first_of_measurement(plan, requirement) || std::ranges::none_of(steps, is_recorded)) return {};
  const auto begins = begins_of(journal, steps);
  std::map<std::string, std::vector<std::pair<double, double>>> points;  // by pair: time and share
  for (const auto& step : plan.steps) {
    const auto found = records.find(step.id);
    const auto times = begins.find(step.id);
    if (found == records.end() || times == begins.end() || times->second.size() != found->second.size()) continue;
    auto& of_pair = points[fmt::format("{}", fmt::join(step.nodes, "+"))];
    for (std::size_t i = 0; i < times->second.size(); ++i)
      if (const auto share = number_of(found->second[i], "offloaded_share"))
        of_pair.emplace_back(times->second[i], *share);
  }
  CourseChart chart{.title = "Share of the traffic that adapters forwarded",
                    .unit = "1",
                    .axis = "s since the first attempt",
                    .dots = true};
  for (auto& [pair, taken] : points) {
    std::ranges::sort(taken);
    CourseLine& line = chart.lines.emplace_back(CourseLine{.name = pair});
    for (const auto& [time, share] : taken) line.times_s.push_back(time), line.values.push_back(share);
  }
  return {.svg = course_svg(chart),
          .caption = kind_words(plan) +
                     "One point for each attempt of a pair, the smallest share of its nodes and "
                     "phases; 0 is a switch in software."};
}

}  // namespace assay::figures
