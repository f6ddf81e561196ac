// Figures of power: what is beyond a limit is named, gaps are gaps, and nothing is drawn of nothing.
#include <gtest/gtest.h>

#include "reports/figures/course_chart.h"
#include "reports/figures/power_chart.h"

namespace assay::figures {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(agreement_chart, a_point_beyond_a_limit_is_a_cross_with_its_name_and_the_others_are_dots) {
  const AgreementChart chart{.title = "Agreement",
                             .points = {{.name = "n1", .meter_w = 1010, .reference_w = 1000},
                                        {.name = "n<2", .meter_w = 920, .reference_w = 1000}},
                             .low = 0.95,
                             .high = 1.05};
  const std::string svg = agreement_svg(chart);
  EXPECT_EQ(count(svg, "<circle class=\"sample\""), 1U);
  EXPECT_EQ(count(svg, "class=\"cross\""), 2U);
  EXPECT_NE(svg.find("n&lt;2"), std::string::npos);
  EXPECT_EQ(svg.find(">n1<"), std::string::npos);
  EXPECT_EQ(count(svg, "class=\"limit\""), 2U);
}

TEST(agreement_chart, without_limits_nothing_is_beyond_and_without_points_nothing_is_drawn) {
  const std::string svg =
      agreement_svg({.title = "A", .points = {{.name = "n1", .meter_w = 1, .reference_w = 2}}, .low = {}, .high = {}});
  EXPECT_EQ(count(svg, "class=\"cross\""), 0U);
  EXPECT_EQ(agreement_svg({.title = "A", .points = {}, .low = {}, .high = {}}), "");
}

CourseLine line_of(const std::string& name, const std::vector<double>& times_s) {
  CourseLine line{.name = name, .times_s = times_s, .values = {}};
  for (const double time : times_s) line.values.push_back(20 + time / 10);
  return line;
}

TEST(course_chart, a_gap_in_the_readings_is_a_gap_in_the_line) {
  const std::string svg =
      course_svg({.title = "T", .unit = "degC", .lines = {line_of("a", {0, 1, 2, 3, 20, 21, 22})}, .marks = {}});
  const auto path = svg.substr(svg.find("class=\"curve\""));
  EXPECT_EQ(count(path.substr(0, path.find("/>")), "M"), 2U);
}

TEST(course_chart, moments_within_the_time_are_marked_and_others_are_not) {
  const CourseChart chart{.title = "T",
                          .unit = "degC",
                          .lines = {line_of("supply", {0, 10, 20}), line_of("return", {0, 10, 20})},
                          .marks = {{.time_s = 12, .words = "steady"}, {.time_s = 50, .words = "late"}}};
  const std::string svg = course_svg(chart);
  EXPECT_NE(svg.find("steady"), std::string::npos);
  EXPECT_EQ(svg.find("late"), std::string::npos);
  EXPECT_NE(svg.find("supply"), std::string::npos);
  EXPECT_NE(svg.find("return"), std::string::npos);
}

TEST(course_chart, a_peak_of_one_reading_among_many_is_drawn) {
  CourseLine line{.name = "a", .times_s = {}, .values = {}};
  for (int i = 0; i < 10'000; ++i) {
    line.times_s.push_back(i);
    line.values.push_back(i == 5000 ? 90 : 20);
  }
  const std::string flat = course_svg({.title = "T", .unit = "degC", .lines = {line}, .marks = {}});
  const auto path = flat.substr(flat.find("class=\"curve\""));
  EXPECT_LT(count(path.substr(0, path.find("/>")), "L"), 800U);
  EXPECT_NE(path.find(" 40.7"), std::string::npos) << "the highest value lies 6 % of the range below the upper edge";
}

TEST(course_chart, a_line_of_one_point_is_nothing) {
  EXPECT_EQ(course_svg({.title = "T", .unit = "W", .lines = {line_of("a", {1})}, .marks = {}}), "");
  EXPECT_EQ(course_svg({.title = "T", .unit = "W", .lines = {}, .marks = {}}), "");
}

}  // namespace
}  // namespace assay::figures
