// curve: draws a figure over the size of messages or of groups.
#include "reports/figures/curve.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "probes/core/portable_math.h"
#include "reports/figures/axis.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

// All lengths are in the units of a view box that is kFigureWidth wide.
constexpr double kCurveLeft = 80;
constexpr double kCurveRight = 600;
constexpr double kCurveTop = 44;
constexpr double kCurveBottom = 264;
constexpr double kHeight = 312;
constexpr double kInset = 18;  // of the first and the last size
constexpr double kRoom = 8;    // between the labels of two sizes

/// From sizes and values to places.
struct Frame {
  double x_low = 1, x_high = 2;
  Axis values = {};
  bool logarithmic = false;

  [[nodiscard]] double x(double size) const {
    return kCurveLeft + kInset +
           portable_log(size / x_low) / portable_log(x_high / x_low) * (kCurveRight - kCurveLeft - 2 * kInset);
  }
  [[nodiscard]] double y(double value) const {
    const double low = portable_log(values.low());
    const double share =
        logarithmic ? std::clamp((portable_log(drawable(value)) - low) / (portable_log(values.high()) - low), 0.0, 1.0)
                    : values.share(value);
    return kCurveBottom - share * (kCurveBottom - kCurveTop);
  }
};

std::vector<double> values_of(const Curve& curve) {
  std::vector<double> all;
  for (const auto& point : curve.points) {
    for (const auto& one : {point.low, point.high, point.value, point.limit, point.acceptance}) {
      if (one) all.push_back(drawable(*one));
    }
    if (point.interval) all.insert(all.end(), {drawable(point.interval->low), drawable(point.interval->high)});
  }
  for (const auto& line : curve.lines) all.push_back(drawable(line.value));
  return all;
}

Frame frame_of(const Curve& curve) {
  Frame frame{.x_low = curve.points.front().x, .x_high = curve.points.back().x};
  const auto all = values_of(curve);
  if (all.empty()) return frame;
  const auto [low, high] = std::ranges::minmax(all);
  frame.logarithmic = low > 0 && high > kLinearRange * low;
  constexpr double kAir = 1.08;  // above the highest
  const double below = drawable(low / kAir) > 0 ? low / kAir : low;
  const double bottom = frame.logarithmic ? below : std::min(low, 0.0);
  frame.values = Axis(bottom, high > 0 ? high * kAir : bottom + 1);
  return frame;
}

/// 1, 2 and 5 times the powers of ten in range; only powers if those are many, and of very many every so many.
std::vector<double> logarithmic_marks(double low, double high) {
  constexpr int kFewDecades = 3, kMostDecades = 12;
  const int first = decimal_exponent(low), last = decimal_exponent(high);
  const bool few = high / low < power_of_ten(kFewDecades);
  std::vector<double> marks;
  for (int power = first; power <= last; power += 1 + (last - first) / kMostDecades) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double mark = step * power_of_ten(power);
      if (mark >= low && mark <= high && (step == 1 || few)) marks.push_back(mark);
    }
  }
  return marks;
}

/// The points whose labels do not touch: first those that are marked, then the last, where the curve ends, then the
/// others from the left.
std::set<const CurvePoint*> labelled(const Curve& curve, const Frame& frame) {
  std::vector<const CurvePoint*> order;
  for (const auto& point : curve.points) {
    if (point.marked) order.push_back(&point);
  }
  order.push_back(&curve.points.back());
  for (const auto& point : curve.points) order.push_back(&point);
  std::set<const CurvePoint*> shown;
  for (const CurvePoint* one : order) {
    const bool touches = std::ranges::any_of(shown, [&](const CurvePoint* other) {
      const double room = (text_width(one->label) + text_width(other->label)) / 2 + kRoom;
      return std::abs(frame.x(one->x) - frame.x(other->x)) < room;
    });
    if (!one->label.empty() && !touches) shown.insert(one);
  }
  return shown;
}

std::string draw_axes(const Curve& curve, const Frame& frame) {
  const auto marks =
      frame.logarithmic ? logarithmic_marks(frame.values.low(), frame.values.high()) : frame.values.marks();
  const Scale scale = scale_for_marks(marks, curve.unit);
  std::string svg = svg_line(kCurveLeft, kCurveTop, kCurveLeft, kCurveBottom, "axis") +
                    svg_line(kCurveLeft, kCurveBottom, kCurveRight, kCurveBottom, "axis");
  for (const double mark : marks) {
    svg += svg_line(kCurveLeft, frame.y(mark), kCurveRight, frame.y(mark), "grid") +
           svg_text(kCurveLeft - 8, frame.y(mark) + 4, "end", "mark",
                    frame.logarithmic ? for_people(mark, curve.unit) : scale.number(mark));
  }
  const std::string unit = frame.logarithmic ? " (logarithmic)" : scale.unit.empty() ? "" : " in " + scale.unit;
  svg += svg_text(0, kCurveTop - 10, "start", "mark", curve.y_name + unit);
  const auto shown = labelled(curve, frame);
  for (const auto& point : curve.points) {
    const double x = frame.x(point.x);
    svg += svg_line(x, kCurveBottom, x, kCurveBottom + 5, "axis");
    if (shown.contains(&point)) svg += svg_text(x, kCurveBottom + 18, "middle", "mark", point.label);
  }
  return svg + svg_text((kCurveLeft + kCurveRight) / 2, kCurveBottom + 38, "middle", "mark", curve.x_name);
}

/// A path through `pick` of each point, broken at points without a value.
template <class Pick>
std::string draw_path(const Curve& curve, const Frame& frame, std::string_view css_class, const Pick& pick) {
  std::string path;
  bool open = false;
  for (const auto& point : curve.points) {
    const std::optional<double> value = pick(point);
    if (value) path += fmt::format("{}{:.2f} {:.2f}", open ? "L" : "M", frame.x(point.x), frame.y(*value));
    open = value.has_value();
  }
  return path.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", css_class, path);
}

/// The area between the smallest and the largest, in pieces where a size has none.
std::string draw_band(const Curve& curve, const Frame& frame) {
  std::string svg;
  for (std::size_t from = 0; from < curve.points.size();) {
    std::size_t to = from;
    while (to < curve.points.size() && curve.points[to].low && curve.points[to].high) ++to;
    std::string path;
    for (std::size_t i = from; i < to; ++i)
      path += fmt::format("{}{:.2f} {:.2f}", i == from ? "M" : "L", frame.x(curve.points[i].x),
                          frame.y(*curve.points[i].low));
    for (std::size_t i = to; i > from; --i)
      path += fmt::format("L{:.2f} {:.2f}", frame.x(curve.points[i - 1].x), frame.y(*curve.points[i - 1].high));
    if (to > from) svg += fmt::format("<path class=\"band\" d=\"{}z\"/>\n", path);
    from = to + 1;
  }
  return svg;
}

std::string draw_point(const CurvePoint& point, const Frame& frame) {
  const double x = frame.x(point.x);
  if (!point.value) return svg_text(x, kCurveBottom - 6, "middle", "limit-label", "?");
  std::string svg;
  if (point.interval) {
    const double low = frame.y(point.interval->low);
    const double high = frame.y(point.interval->high);
    svg += svg_line(x, low, x, high, "interval") + svg_line(x - 3, low, x + 3, low, "interval") +
           svg_line(x - 3, high, x + 3, high, "interval");
  }
  const double y = frame.y(*point.value);
  if (!point.passes)
    return svg + svg_line(x - 4, y - 4, x + 4, y + 4, "cross") + svg_line(x - 4, y + 4, x + 4, y - 4, "cross");
  return svg + fmt::format("<circle class=\"dot\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\"/>\n", x, y);
}

/// Words at the right end of lines, moved apart if they would touch; each with the place that it belongs to.
std::string draw_ends(const Curve& curve, const Frame& frame) {
  struct Word {
    double y;
    std::string words, css_class;
  };
  std::vector<Word> words;
  for (const auto& line : curve.lines) words.push_back({frame.y(line.value), line.words, "mark"});
  const auto last_limit = std::ranges::find_if(curve.points.rbegin(), curve.points.rend(),
                                               [](const CurvePoint& point) { return point.limit.has_value(); });
  if (last_limit != curve.points.rend()) words.push_back({frame.y(*last_limit->limit), "limit", "limit-label"});
  std::ranges::stable_sort(words, {}, &Word::y);
  std::string svg;
  double last = 0;
  for (const auto& word : words) {
    constexpr double kLine = 13;
    last = std::max(word.y + 4, last + kLine);
    svg += svg_text(kCurveRight + 8, last, "start", word.css_class, word.words);
  }
  return svg;
}

}  // namespace

std::string curve_svg(const Curve& curve) {
  const Frame frame = frame_of(curve);
  const bool several = std::ranges::any_of(curve.points, [](const CurvePoint& point) { return point.subjects > 1; });
  std::string svg = svg_open(curve.title, curve.description, kHeight) +
                    svg_text(0, 14, "start", "heading", curve.title) + draw_axes(curve, frame);
  if (several) svg += draw_band(curve, frame);
  for (const auto& line : curve.lines)
    svg += svg_line(kCurveLeft, frame.y(line.value), kCurveRight, frame.y(line.value), line.css_class);
  svg += draw_path(curve, frame, "limit-path", [](const CurvePoint& point) { return point.limit; });
  svg += draw_path(curve, frame, "acceptance-path", [](const CurvePoint& point) { return point.acceptance; });
  svg += draw_path(curve, frame, "curve", [](const CurvePoint& point) { return point.value; });
  for (const auto& point : curve.points) svg += draw_point(point, frame);
  return svg + draw_ends(curve, frame) + "</svg>\n";
}

}  // namespace assay::figures
