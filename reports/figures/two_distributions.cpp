// two_distributions: draws two step functions and their limits.
#include "reports/figures/two_distributions.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/scale.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

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
