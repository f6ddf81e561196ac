// power_chart: sums at common times, cut into parts of the time; ratios of two meters over a reference.
#include "reports/figures/power_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

constexpr double kPowerLeft = 70, kPowerRight = kFigureWidth - 20, kPowerTop = 30, kPowerBottom = 230,
                 kPowerHeight = 275;
constexpr std::size_t kTimeParts = 360;
constexpr std::array kBandShades = {"s-pass_wide", "s-pass_middle", "s-pass_narrow"};

/// The bands' powers at one time, summed from the bottom.
using BandSums = std::vector<double>;

/// At every time at which all bands have a reading.
std::map<double, BandSums> sums_of(const std::vector<PowerBand>& bands) {
  std::map<double, BandSums> all;
  for (std::size_t band = 0; band < bands.size(); ++band) {
    for (std::size_t i = 0; i < bands[band].times_s.size(); ++i) {
      BandSums& sums = all[drawable(bands[band].times_s[i])];
      if (sums.size() == band) sums.push_back(drawable((sums.empty() ? 0 : sums.back()) + bands[band].watts[i]));
    }
  }
  std::erase_if(all, [&](const auto& entry) { return entry.second.size() != bands.size(); });
  return all;
}

/// One point for each part of the time: the one with the greatest sum.
std::map<double, BandSums> thinned_sums(const std::map<double, BandSums>& all) {
  if (all.size() <= kTimeParts) return all;
  const double begin_s = all.begin()->first, part_s = (all.rbegin()->first - begin_s) / static_cast<double>(kTimeParts);
  std::map<double, std::map<double, BandSums>::const_iterator> greatest;
  for (auto one = all.begin(); one != all.end(); ++one) {
    const auto [place, fresh] = greatest.try_emplace(std::floor((one->first - begin_s) / part_s), one);
    if (!fresh && one->second.back() > place->second->second.back()) place->second = one;
  }
  std::map<double, BandSums> few;
  for (const auto& [part, one] : greatest) few.insert(*one);
  return few;
}

class PowerDrawing {
 public:
  PowerDrawing(const PowerChart& chart, std::map<double, BandSums> points) : chart_(chart), points_(std::move(points)) {
    begin_s_ = points_.begin()->first;
    end_s_ = points_.rbegin()->first;
    double most_w = std::max(1.0, chart.budget_w.value_or(0));
    for (const auto& [time, sums] : points_) most_w = std::max(most_w, sums.back());
    times_ = Axis(begin_s_, end_s_);
    watts_ = Axis(0, 1.08 * most_w);
  }

  [[nodiscard]] std::string take() const {
    std::string svg = svg_open(chart_.title, "Power of each rack over time, one on another.", kPowerHeight);
    svg += events() + bands() + axes();
    if (chart_.budget_w)
      svg += svg_line(kPowerLeft, y(*chart_.budget_w), kPowerRight, y(*chart_.budget_w), "limit") +
             svg_text(kPowerRight, y(*chart_.budget_w) - 4, "end", "limit-label", chart_.budget_words);
    return svg + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(double time_s) const { return kPowerLeft + (kPowerRight - kPowerLeft) * times_.share(time_s); }
  [[nodiscard]] double y(double watts) const { return kPowerBottom - (kPowerBottom - kPowerTop) * watts_.share(watts); }

  [[nodiscard]] std::string bands() const {
    std::string svg;
    for (std::size_t band = 0; band < chart_.bands.size(); ++band) {
      std::string upper, lower;
      for (const auto& [time_s, sums] : points_) {
        upper += fmt::format("{}{:.2f} {:.2f}", upper.empty() ? "M" : "L", x(time_s), y(sums[band]));
        lower = fmt::format("L{:.2f} {:.2f}", x(time_s), y(band == 0 ? 0 : sums[band - 1])) + lower;
      }
      svg += fmt::format("<path class=\"{}\" d=\"{}{}z\"/>\n", kBandShades[band % kBandShades.size()], upper, lower);
      constexpr std::size_t kMostNamed = 8;
      if (chart_.bands.size() > kMostNamed) continue;
      const BandSums& last = points_.rbegin()->second;
      const double middle_w = (last[band] + (band == 0 ? 0 : last[band - 1])) / 2;
      svg += svg_text(kPowerRight - 4, y(middle_w) + 4, "end", "mark", chart_.bands[band].name);
    }
    return svg;
  }

  [[nodiscard]] std::string events() const {
    std::string svg;
    int number = 0;
    for (const auto& one : chart_.events) {
      ++number;
      if (one.end_s <= begin_s_ || one.begin_s >= end_s_) continue;
      svg += svg_rect(x(one.begin_s), kPowerTop, x(one.end_s) - x(one.begin_s), kPowerBottom - kPowerTop, "guard") +
             svg_text(x(one.begin_s) + 2, kPowerTop + 11, "start", "mark", fmt::format("{}", number));
    }
    return svg;
  }

  [[nodiscard]] std::string axes() const {
    const auto marks = watts_.marks();
    const Scale scale = scale_for_marks(marks, "W");
    std::string svg = svg_line(kPowerLeft, kPowerTop, kPowerLeft, kPowerBottom, "axis") +
                      svg_line(kPowerLeft, kPowerBottom, kPowerRight, kPowerBottom, "axis");
    for (const double mark : marks) {
      svg += svg_line(kPowerLeft, y(mark), kPowerRight, y(mark), "grid") +
             svg_text(kPowerLeft - 8, y(mark) + 4, "end", "mark", scale.number(mark));
    }
    for (const double mark : Axis(0, end_s_ - begin_s_).marks()) {
      svg += svg_line(x(begin_s_ + mark), kPowerBottom, x(begin_s_ + mark), kPowerBottom + 5, "axis") +
             svg_text(x(begin_s_ + mark), kPowerBottom + 18, "middle", "mark", fmt::format("{:g}", mark));
    }
    svg += svg_text(0, kPowerTop - 10, "start", "mark", "power in " + scale.unit);
    return svg +
           svg_text((kPowerLeft + kPowerRight) / 2, kPowerBottom + 38, "middle", "mark", "s since the first reading");
  }

  const PowerChart& chart_;
  std::map<double, BandSums> points_;
  double begin_s_ = 0, end_s_ = 0;
  Axis times_, watts_;
};

constexpr double kAgreeLeft = 70, kAgreeRight = kFigureWidth - 30, kAgreeTop = 30, kAgreeBottom = 230,
                 kAgreeHeight = 275;
constexpr double kLeastSpan = 0.02;  // of ratios: below it every chart would show only noise
constexpr int kMostNames = 24;

class AgreementDrawing {
 public:
  explicit AgreementDrawing(const AgreementChart& chart) : chart_(chart) {
    double most = kLeastSpan, most_w = 0;
    for (const auto& one : chart.points) {
      most_w = std::max(most_w, one.reference_w);
      most = std::max(most, std::abs(difference(one)));
    }
    for (const auto& limit : {chart.low, chart.high})
      if (limit) most = std::max(most, std::abs(*limit - 1));
    differences_ = Axis(-1.15 * most, 1.15 * most);
    watts_ = Axis(0, 1.05 * most_w);
  }

  [[nodiscard]] std::string take() const {
    std::string svg =
        svg_open(chart_.title, "Difference of two meters over the power that they measure.", kAgreeHeight);
    svg += axes() + limits();
    int names = 0;
    for (const auto& one : chart_.points) {
      const double x = at_w(one.reference_w), y = at_difference(difference(one));
      if (!is_beyond(one)) {
        svg += fmt::format("<circle class=\"sample\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.5\"/>\n", x, y);
        continue;
      }
      svg += svg_line(x - 4, y - 4, x + 4, y + 4, "cross") + svg_line(x - 4, y + 4, x + 4, y - 4, "cross");
      if (++names > kMostNames) continue;
      const bool right = x < (kAgreeLeft + kAgreeRight) / 2;
      svg += svg_text(right ? x + 8 : x - 8, y + 4, right ? "start" : "end", "mark", one.name);
    }
    return svg + "</svg>\n";
  }

 private:
  static double difference(const AgreementPoint& one) { return one.meter_w / one.reference_w - 1; }
  [[nodiscard]] bool is_beyond(const AgreementPoint& one) const {
    const double ratio = one.meter_w / one.reference_w;
    return (chart_.low && ratio < *chart_.low) || (chart_.high && ratio > *chart_.high);
  }
  [[nodiscard]] double at_w(double watts) const {
    return kAgreeLeft + (kAgreeRight - kAgreeLeft) * watts_.share(watts);
  }
  [[nodiscard]] double at_difference(double share) const {
    return kAgreeBottom - (kAgreeBottom - kAgreeTop) * differences_.share(share);
  }

  [[nodiscard]] std::string limits() const {
    std::string svg;
    for (const auto& [limit, below] : {std::pair(chart_.low, true), std::pair(chart_.high, false)}) {
      if (!limit) continue;
      const double y = at_difference(*limit - 1);
      svg += svg_line(kAgreeLeft, y, kAgreeRight, y, "limit") +
             svg_text(kAgreeRight, below ? y + 12 : y - 4, "end", "limit-label", below ? "at least" : "at most");
    }
    return svg;
  }

  [[nodiscard]] std::string axes() const {
    std::string svg = svg_line(kAgreeLeft, kAgreeTop, kAgreeLeft, kAgreeBottom, "axis") +
                      svg_line(kAgreeLeft, kAgreeBottom, kAgreeRight, kAgreeBottom, "axis");
    for (const double mark : differences_.marks()) {
      constexpr double kPercent = 100;
      svg += svg_line(kAgreeLeft, at_difference(mark), kAgreeRight, at_difference(mark), "grid") +
             svg_text(kAgreeLeft - 8, at_difference(mark) + 4, "end", "mark",
                      fmt::format("{:+.3g} %", mark == 0 ? 0.0 : kPercent * mark));
    }
    const auto marks = watts_.marks();
    const Scale scale = scale_for_marks(marks, "W");
    for (const double mark : marks) {
      svg += svg_line(at_w(mark), kAgreeBottom, at_w(mark), kAgreeBottom + 5, "axis") +
             svg_text(at_w(mark), kAgreeBottom + 18, "middle", "mark", scale.number(mark));
    }
    return svg + svg_text(0, kAgreeTop - 10, "start", "mark", "meter over reference, less 1") +
           svg_text((kAgreeLeft + kAgreeRight) / 2, kAgreeBottom + 38, "middle", "mark", "reference in " + scale.unit);
  }

  const AgreementChart& chart_;
  Axis differences_, watts_;
};

}  // namespace

std::string power_svg(const PowerChart& chart) {
  auto points = thinned_sums(sums_of(chart.bands));
  if (chart.bands.empty() || points.size() < 2) return "";
  return PowerDrawing(chart, std::move(points)).take();
}

std::string agreement_svg(const AgreementChart& chart) {
  if (chart.points.empty()) return "";
  return AgreementDrawing(chart).take();
}

}  // namespace assay::figures
