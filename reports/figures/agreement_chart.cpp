// agreement_chart: ratios over a reference.
#include "reports/figures/agreement_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/scale.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

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

std::string agreement_svg(const AgreementChart& chart) {
  if (chart.points.empty()) return "";
  return AgreementDrawing(chart).take();
}

}  // namespace assay::figures
