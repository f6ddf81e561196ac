// Every chart of numbers that no machine measures: bounded work, and places within the figure.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "reports/figures/axis.h"
#include "reports/figures/course_chart.h"
#include "reports/figures/curve.h"
#include "reports/figures/parts_bars.h"
#include "reports/figures/plot.h"
#include "reports/figures/power_chart.h"
#include "tests/unit/figures/chart_fixture.h"

namespace assay::figures {
namespace {

using Limits = std::numeric_limits<double>;
using Numbers = std::vector<double>;

/// Extremes of a double, of a count, and neighbours that differ in their last bit.
const Numbers& extremes() {
  static const Numbers all = {0,
                              -0.0,
                              Limits::denorm_min(),
                              -Limits::denorm_min(),
                              Limits::min(),
                              1e-300,
                              1e-290,
                              0.1,
                              std::nextafter(0.1, 1),
                              1,
                              -1,
                              1e17,
                              std::nextafter(1e17, 2e17),
                              9223372036854775807.0,
                              -9223372036854775808.0,
                              18446744073709551615.0,
                              1e30,
                              std::nextafter(1e30, 2e30),
                              1e300,
                              1.797e308,
                              Limits::max(),
                              std::nextafter(Limits::max(), 0),
                              -Limits::max(),
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN()};
  return all;
}

std::string course_of(const Numbers& times_s, const Numbers& values) {
  return course_svg({.title = "power",
                     .unit = "W",
                     .lines = {{.name = "a", .times_s = times_s, .values = values}},
                     .marks = {{.time_s = times_s.front(), .words = "steady"}},
                     .zero_s = values.back()});
}

/// Every chart of numbers, with `values` as all of its numbers.
std::vector<std::string> every_chart(const Numbers& values) {
  const double first = values.front(), last = values.back();
  Plot plot{.title = "rate", .unit = "B/s", .rows = {}};
  Curve curve{.title = "rate", .description = "", .x_name = "size", .y_name = "rate", .unit = "B/s"};
  PowerBand band{.name = "rack", .times_s = {}, .watts = {}};
  AgreementChart agreement{.title = "meters", .points = {}, .low = last, .high = first};
  PartsBars bars{.title = "time", .description = "", .axis = "", .names = {"a", "b"}, .rows = {}};
  Numbers rising;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double one = values[i];
    rising.push_back(static_cast<double>(i));
    plot.rows.push_back({.label = "n01",
                         .samples = values,
                         .value = one,
                         .interval = Interval{.low = first, .high = last},
                         .limit_low = first,
                         .limit_high = last,
                         .acceptance_low = one,
                         .acceptance_high = last,
                         .outcome = "pass",
                         .passes = true});
    curve.points.push_back({.x = static_cast<double>(i + 1),
                            .label = "s",
                            .subjects = 2,
                            .low = first,
                            .high = last,
                            .value = one,
                            .interval = Interval{.low = first, .high = last},
                            .limit = last,
                            .acceptance = one});
    agreement.points.push_back({.name = "n01", .meter_w = one, .reference_w = last});
    bars.rows.push_back({.label = "n01", .parts = {one, last}});
  }
  curve.lines.push_back({.value = last, .words = "wire", .css_class = "wire"});
  band.times_s = values;
  band.watts = values;
  PowerBand steady{.name = "rack", .times_s = rising, .watts = values};
  return {
      strip_plot(plot),
      distribution_plot(plot),
      curve_svg(curve),
      course_of(values, values),
      course_of(rising, values),
      course_of(values, rising),
      power_svg({.title = "power", .bands = {band, band}, .events = {{first, last, "step"}}, .budget_w = last}),
      power_svg({.title = "power", .bands = {steady}, .events = {}, .budget_w = first}),
      agreement_svg(agreement),
      parts_svg(bars),
      two_distributions({.title = "rate", .unit = "s", .a = values, .b = values, .limit_a = first, .limit_b = last})};
}

/// Whether `svg` is small and no place in it is beyond a page.
testing::AssertionResult is_bounded(const std::string& svg, std::size_t most_bytes) {
  if (svg.size() > most_bytes) return testing::AssertionFailure() << svg.size() << " bytes";
  constexpr std::size_t kMostDigits = 24;
  std::size_t digits = 0;
  for (const char letter : svg) {
    digits = letter >= '0' && letter <= '9' ? digits + 1 : 0;
    if (digits > kMostDigits) return testing::AssertionFailure() << "a number of many digits in " << svg;
  }
  for (const char* bad : {"nan", "inf\"", "inf "}) {
    if (fixture::contains(svg, bad)) return testing::AssertionFailure() << bad << " in " << svg;
  }
  return testing::AssertionSuccess();
}

constexpr std::size_t kMostOfFew = 20'000;  // bytes of a figure of three numbers

TEST(Extremes, every_chart_of_any_three_numbers_is_small_and_within_its_page) {
  for (const double a : extremes()) {
    for (const double b : extremes()) {
      for (const auto& svg : every_chart({a, b, a})) ASSERT_TRUE(is_bounded(svg, kMostOfFew)) << a << ' ' << b;
    }
  }
}

TEST(Extremes, every_chart_of_random_doubles_is_small_and_within_its_page) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same numbers every time
  for (int i = 0; i < 500; ++i) {
    const Numbers values = {std::bit_cast<double>(random()), std::bit_cast<double>(random()),
                            std::bit_cast<double>(random()), std::bit_cast<double>(random())};
    for (const auto& svg : every_chart(values))
      ASSERT_TRUE(is_bounded(svg, kMostOfFew)) << testing::PrintToString(values);
  }
}

TEST(Extremes, a_line_of_many_points_at_times_that_are_none_ends) {
  const Numbers times_s(5000, Limits::quiet_NaN());
  EXPECT_EQ(course_of(times_s, times_s), "");
  Numbers rising(5000);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<double>(i) * 1e305;
  EXPECT_TRUE(is_bounded(course_of(rising, rising), kMostOfFew));
}

TEST(Extremes, an_axis_has_few_marks_that_differ) {
  for (const double low : extremes()) {
    for (const double high : extremes()) {
      for (const Axis& axis : {Axis(low, high), Axis::around(Numbers{low, high}, 0.05)}) {
        const auto marks = axis.marks();
        ASSERT_TRUE(!marks.empty() && marks.size() <= 12) << low << ' ' << high << ": " << marks.size();
        ASSERT_TRUE(std::ranges::adjacent_find(marks, std::ranges::greater_equal()) == marks.end())
            << low << ' ' << high;
        ASSERT_GE(marks.front(), axis.low()) << low << ' ' << high;
        ASSERT_LE(marks.back(), axis.high()) << low << ' ' << high;
        for (const double value : extremes())
          ASSERT_TRUE(axis.share(value) >= 0 && axis.share(value) <= 1) << value << " between " << low << ' ' << high;
        ASSERT_LE(scale_for_marks(marks, "B/s").text(marks.back()).size(), 40U) << low << ' ' << high;
      }
    }
  }
}

}  // namespace
}  // namespace assay::figures
