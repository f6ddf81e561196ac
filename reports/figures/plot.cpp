// plot: draws samples of few subjects, the distribution of many, or two distributions with their limits.
#include "reports/figures/plot.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

// All lengths are in the units of a view box that is kFigureWidth wide.
constexpr double kPlotLeft = 170;
constexpr double kPlotRight = 620;
constexpr double kPlotTop = 40;
constexpr double kRowHeight = 34;
constexpr double kAxisHeight = 48;
constexpr double kDistributionHeight = 180;
constexpr std::size_t kMostDotsOfRow = 200;
constexpr std::size_t kMostOfDistribution = 500;  // more dots than that overlap

/// The horizontal place of `value`.
double x_of(const Axis& axis, double value) { return kPlotLeft + axis.share(value) * (kPlotRight - kPlotLeft); }

Axis axis_of(const Plot& plot) {
  std::vector<double> all;
  for (const auto& row : plot.rows) {
    all.insert(all.end(), row.samples.begin(), row.samples.end());
    for (const auto& one : {row.value, row.limit_low, row.limit_high, row.acceptance_low, row.acceptance_high}) {
      if (one) all.push_back(*one);
    }
    if (row.interval) all.insert(all.end(), {row.interval->low, row.interval->high});
  }
  constexpr double kMargin = 0.05;
  return Axis::around(all, kMargin);
}

std::string open_svg(const Plot& plot, double height) {
  return svg_open(plot.title, fmt::format("{} subjects", plot.rows.size()), height);
}

std::string draw_axis(const Plot& plot, const Axis& axis, double y) {
  const auto marks = axis.marks();
  const Scale scale = scale_for_marks(marks, plot.unit);
  std::string svg = svg_line(kPlotLeft, y, kPlotRight, y, "axis");
  for (const double mark : marks) {
    svg += svg_line(x_of(axis, mark), kPlotTop, x_of(axis, mark), y, "grid") +
           svg_line(x_of(axis, mark), y, x_of(axis, mark), y + 5, "axis");
    svg += svg_text(x_of(axis, mark), y + 18, "middle", "mark", scale.number(mark));
  }
  return svg + svg_text((kPlotLeft + kPlotRight) / 2, y + 38, "middle", "title",
                        scale.unit.empty() ? plot.title : fmt::format("{} in {}", plot.title, scale.unit));
}

/// Limit, guard band and acceptance limit of one side between two heights.
std::string draw_side(const Axis& axis, const std::optional<double>& limit, const std::optional<double>& acceptance,
                      double y1, double y2) {
  if (!limit) return "";
  std::string svg;
  if (acceptance && *acceptance != *limit) {
    const double left = std::min(x_of(axis, *limit), x_of(axis, *acceptance));
    const double right = std::max(x_of(axis, *limit), x_of(axis, *acceptance));
    svg += svg_rect(left, y1, right - left, y2 - y1, "guard");
    svg += svg_line(x_of(axis, *acceptance), y1, x_of(axis, *acceptance), y2, "acceptance");
  }
  return svg + svg_line(x_of(axis, *limit), y1, x_of(axis, *limit), y2, "limit");
}

std::string draw_limits(const Axis& axis, const PlotRow& row, double y1, double y2) {
  return draw_side(axis, row.limit_low, row.acceptance_low, y1, y2) +
         draw_side(axis, row.limit_high, row.acceptance_high, y1, y2);
}

bool same_limits(const PlotRow& a, const PlotRow& b) {
  return a.limit_low == b.limit_low && a.limit_high == b.limit_high;
}

/// Words over the limit lines, when all rows have the same.
std::string label_limits(const Plot& plot, const Axis& axis) {
  const PlotRow& first = plot.rows.front();
  const bool common = std::ranges::all_of(plot.rows, [&](const PlotRow& row) { return same_limits(row, first); });
  if (!common)
    return svg_text(kPlotLeft, kPlotTop - 8, "start", "limit-label",
                    "limit of each row: solid line; guard band: shaded");
  std::vector<double> shown;
  for (const auto& one : {first.limit_low, first.limit_high, first.value}) {
    if (one) shown.push_back(*one);
  }
  const Scale scale = scale_for(shown, plot.unit);
  const auto label = [&](const std::optional<double>& limit, const char* words, double y) -> std::string {
    if (!limit) return "";
    const double x = x_of(axis, *limit);
    constexpr double kHalfLabel = 110;  // a label is about this long on each side
    const char* anchor = x < kPlotLeft + kHalfLabel ? "start" : x > kPlotRight - kHalfLabel ? "end" : "middle";
    return svg_text(x, y, anchor, "limit-label", fmt::format("{} {}", words, scale.text(*limit)));
  };
  const bool two = first.limit_low && first.limit_high;
  return label(first.limit_low, "limit: at least", two ? kPlotTop - 22 : kPlotTop - 8) +
         label(first.limit_high, "limit: at most", kPlotTop - 8);
}

std::string draw_samples(const Axis& axis, const PlotRow& row, double middle) {
  std::string svg;
  const std::size_t count = row.samples.size();
  const std::size_t drawn = std::min(count, kMostDotsOfRow);
  for (std::size_t i = 0; i < drawn; ++i) {
    const double sample = row.samples[i * count / drawn];
    // Five heights in turn, so that equal samples stay visible.
    const double y = middle - 3 + (static_cast<double>(i % 5) - 2) * 2.6;
    svg += fmt::format("<circle class=\"sample\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.1\"/>\n", x_of(axis, sample), y);
  }
  return svg;
}

std::string draw_row(const Axis& axis, const PlotRow& row, double top) {
  const double middle = top + kRowHeight / 2;
  std::string svg = draw_limits(axis, row, top, top + kRowHeight) + draw_samples(axis, row, middle);
  if (row.interval) {
    const double low = x_of(axis, row.interval->low);
    const double high = x_of(axis, row.interval->high);
    const double y = top + kRowHeight - 5;
    svg += svg_line(low, y, high, y, "interval") + svg_line(low, y - 3, low, y + 3, "interval") +
           svg_line(high, y - 3, high, y + 3, "interval");
  }
  if (row.value)
    svg += svg_line(x_of(axis, *row.value), top + 4, x_of(axis, *row.value), top + kRowHeight - 4, "value");
  constexpr std::size_t kLongestRowLabel = 26;
  const std::string label =
      row.label.size() > kLongestRowLabel ? row.label.substr(0, kLongestRowLabel - 1) + "…" : row.label;
  svg += svg_text(kPlotLeft - 10, middle + 4, "end", "label", label);
  return svg + svg_text(kPlotRight + 10, middle + 4, "start",
                        row.passes  ? "outcome-text"
                        : row.fails ? "outcome-text bad"
                                    : "outcome-text open",
                        row.outcome);
}

// All lengths are in the units of a view box that is kFigureWidth wide.
constexpr double kPairLeft = 90, kPairRight = 720, kPairTop = 30, kPairBottom = 190, kPairHeight = 240;
constexpr std::size_t kMostSteps = 1000;  // finer than paper shows

struct PairAxes {
  Axis axis;
  [[nodiscard]] double x(double value) const { return kPairLeft + axis.share(value) * (kPairRight - kPairLeft); }
  [[nodiscard]] static double y(double share) { return kPairBottom - share * (kPairBottom - kPairTop); }
};

PairAxes axes_of(const TwoDistributions& both) {
  std::vector<double> all = both.a;
  all.insert(all.end(), both.b.begin(), both.b.end());
  for (const auto& limit : {both.limit_a, both.limit_b}) {
    if (limit) all.push_back(*limit);
  }
  constexpr double kMargin = 0.05;
  return {.axis = Axis::around(all, kMargin)};
}

std::string steps(std::vector<double> values, const PairAxes& place, const char* css_class) {
  std::ranges::sort(values);
  std::string points = fmt::format("{:.2f},{:.2f}", kPairLeft, PairAxes::y(0));
  const std::size_t drawn = std::min(values.size(), kMostSteps);
  double before = 0;
  for (std::size_t i = 0; i < drawn; ++i) {
    const std::size_t last = (i + 1) * values.size() / drawn;  // values up to here are at or below
    const double x = place.x(values[last - 1]);
    const double share = static_cast<double>(last) / static_cast<double>(values.size());
    points += fmt::format(" {0:.2f},{1:.2f} {0:.2f},{2:.2f}", x, PairAxes::y(before), PairAxes::y(share));
    before = share;
  }
  points += fmt::format(" {:.2f},{:.2f}", kPairRight, PairAxes::y(1));
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", css_class, points);
}

std::string limit_line(const PairAxes& place, double limit, const std::string& words, double y) {
  return svg_line(place.x(limit), kPairTop, place.x(limit), kPairBottom, "limit") +
         svg_text(place.x(limit), y, place.x(limit) > (kPairLeft + kPairRight) / 2 ? "end" : "start", "limit-label",
                  words);
}

}  // namespace

std::string strip_plot(const Plot& plot) {
  const Axis axis = axis_of(plot);
  const double bottom = kPlotTop + kRowHeight * static_cast<double>(plot.rows.size());
  std::string svg = open_svg(plot, bottom + kAxisHeight) + draw_axis(plot, axis, bottom) + label_limits(plot, axis);
  for (std::size_t i = 0; i < plot.rows.size(); ++i)
    svg += draw_row(axis, plot.rows[i], kPlotTop + kRowHeight * static_cast<double>(i));
  return svg + "</svg>\n";
}

std::string distribution_plot(const Plot& plot) {
  const Axis axis = axis_of(plot);
  const double bottom = kPlotTop + kDistributionHeight;
  std::string svg = open_svg(plot, bottom + kAxisHeight) + draw_axis(plot, axis, bottom) + label_limits(plot, axis);
  const bool common =
      std::ranges::all_of(plot.rows, [&](const PlotRow& row) { return same_limits(row, plot.rows.front()); });
  if (common) svg += draw_limits(axis, plot.rows.front(), kPlotTop, bottom);
  for (const double share : {0.0, 0.5, 1.0}) {
    const double y = bottom - share * kDistributionHeight;
    svg += svg_line(kPlotLeft, y, kPlotRight, y, "grid") +
           svg_text(kPlotLeft - 10, y + 4, "end", "mark", fmt::format("{:.0f} %", share * 100));
  }
  std::vector<const PlotRow*> rows;
  for (const auto& row : plot.rows) {
    if (row.value) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, {}, [](const PlotRow* row) { return *row->value; });
  const std::size_t every = (rows.size() + kMostOfDistribution - 1) / kMostOfDistribution;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->passes && i % every != 0 && i + 1 != rows.size()) continue;
    const double x = x_of(axis, *rows[i]->value);
    const double y = bottom - (static_cast<double>(i) + 1) / static_cast<double>(rows.size()) * kDistributionHeight;
    if (rows[i]->passes) {
      svg += fmt::format("<circle class=\"sample\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.4\"/>\n", x, y);
    } else {
      svg += svg_line(x - 4, y - 4, x + 4, y + 4, "cross") + svg_line(x - 4, y + 4, x + 4, y - 4, "cross");
    }
  }
  return svg + svg_text(kPlotLeft - 10, kPlotTop - 12, "end", "mark", "share of subjects") + "</svg>\n";
}

std::string two_distributions(const TwoDistributions& both) {
  const PairAxes place = axes_of(both);
  const auto marks = place.axis.marks();
  const Scale scale = scale_for_marks(marks, both.unit);
  std::string svg =
      svg_open(both.title, fmt::format("{} values in A, {} in B", both.a.size(), both.b.size()), kPairHeight);
  for (const double mark : marks) {
    svg += svg_line(place.x(mark), kPairTop, place.x(mark), kPairBottom, "grid") +
           svg_text(place.x(mark), kPairBottom + 18, "middle", "mark", scale.number(mark));
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    svg += svg_line(kPairLeft, PairAxes::y(share), kPairRight, PairAxes::y(share), share == 0 ? "axis" : "grid") +
           svg_text(kPairLeft - 10, PairAxes::y(share) + 4, "end", "mark", fmt::format("{:.0f} %", share * 100));
  }
  const bool same = both.limit_a == both.limit_b;
  if (both.limit_a) svg += limit_line(place, *both.limit_a, same ? "limit" : "limit of A", kPairTop - 6);
  if (both.limit_b && !same) svg += limit_line(place, *both.limit_b, "limit of B", kPairTop - 18);
  svg += steps(both.a, place, "of-a") + steps(both.b, place, "of-b");
  return svg +
         svg_text((kPairLeft + kPairRight) / 2, kPairBottom + 38, "middle", "title",
                  scale.unit.empty() ? both.title : fmt::format("{} in {}", both.title, scale.unit)) +
         "</svg>\n";
}

}  // namespace assay::figures
