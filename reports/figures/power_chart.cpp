// power_chart: sums at common times, cut into parts of the time.
#include "reports/figures/power_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/scale.h"
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

}  // namespace

std::string power_svg(const PowerChart& chart) {
  auto points = thinned_sums(sums_of(chart.bands));
  if (chart.bands.empty() || points.size() < 2) return "";
  return PowerDrawing(chart, std::move(points)).take();
}

}  // namespace assay::figures
