// Nights of a fleet and of a unit, and the pages that show them.
#include "reports/nightly/nights.h"

#include <gtest/gtest.h>

#include "reports/nightly/fleet_page.h"
#include "reports/nightly/unit_page.h"
#include "tests/unit/nightly/nights_fixture.h"

namespace assay::nightly {
namespace {

using fixture::Folder;
using fixture::history_of;
using fixture::Nights;
using fixture::report_of;

TEST(nights, a_flag_shows_from_its_onset_on_and_a_busy_night_is_neither_good_nor_bad) {
  const Folder folder;
  const Nights given;
  const auto history = history_of(folder.path + "/h.db", given);
  const auto overview = overview_of(history, report_of(given), 10);
  ASSERT_TRUE(overview) << overview.error().error.text();
  ASSERT_EQ(overview->nodes.size(), 6U);
  EXPECT_EQ(overview->nodes[0].nights[3], NodeNight::measured);
  EXPECT_EQ(overview->nodes[0].nights[4], NodeNight::busy);
  EXPECT_EQ(overview->nodes[2].nights[5], NodeNight::measured);
  EXPECT_EQ(overview->nodes[2].nights[6], NodeNight::confirmed);
  EXPECT_EQ(overview->nodes[2].nights[9], NodeNight::confirmed);
  EXPECT_EQ(overview->last_started, "2026-03-10T23:00:00.000Z");
}

TEST(nights, begin_with_the_history_and_not_before_it) {
  const Folder folder;
  const Nights given;
  const auto overview = overview_of(history_of(folder.path + "/h.db", given), report_of(given), 12);
  ASSERT_TRUE(overview);
  ASSERT_EQ(overview->nodes[1].nights.size(), 10U);
  EXPECT_EQ(overview->nodes[1].nights[0], NodeNight::measured);
}

TEST(nights, names_are_in_the_order_in_which_people_count) {
  const Folder folder;
  const auto overview = overview_of(history_of(folder.path + "/h.db", {.nodes = 12, .nights = 1}),
                                    report_of({.nodes = 12, .nights = 1}), 2);
  ASSERT_TRUE(overview);
  EXPECT_EQ(overview->nodes[1].name, "n2");
  EXPECT_EQ(overview->nodes[11].name, "n12");
}

TEST(nights, a_group_shows_the_worst_of_its_nodes) {
  const Folder folder;
  const Nights given;
  const auto overview = overview_of(history_of(folder.path + "/h.db", given), report_of(given), 10);
  ASSERT_TRUE(overview);
  const auto rows = grouped(overview->nodes, 2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "leaf l0");
  EXPECT_EQ(rows[0].nodes, 3U);
  EXPECT_EQ(rows[0].nights[9], NodeNight::confirmed);
  EXPECT_EQ(rows[1].nights[9], NodeNight::measured);
}

TEST(nights, a_unit_has_its_figures_and_the_median_of_its_peers) {
  const Folder folder;
  const Nights given;
  const auto trends = trends_of(history_of(folder.path + "/h.db", given), report_of(given), "n3", 10);
  ASSERT_TRUE(trends) << trends.error().error.text();
  ASSERT_EQ(trends->size(), 1U);
  const auto& series = trends->front().series.at(0);
  ASSERT_EQ(series.nights.size(), 10U);
  ASSERT_TRUE(series.nights[9].cohort);
  EXPECT_LT(series.nights[9].value, 0.95 * *series.nights[9].cohort);
  EXPECT_EQ(series.flag, std::optional<std::size_t>(0));
}

TEST(nights, three_peers_have_no_median) {
  const Folder folder;
  const Nights given{.nodes = 3};
  const auto trends = trends_of(history_of(folder.path + "/h.db", given), report_of(given), "n3", 10);
  ASSERT_TRUE(trends);
  EXPECT_FALSE(trends->front().series.at(0).nights.at(0).cohort);
}

TEST(nights, a_renamed_node_has_its_earlier_nights_under_its_earlier_name) {
  const Folder folder;
  const Nights given;
  auto history = history_of(folder.path + "/h.db", given);
  history::Sweep sweep{.run_sha256 = std::string(64, 'c'),
                       .started = "2026-03-11T23:00:00.000Z",
                       .night = fixture::kFirst + std::chrono::days(10),
                       .verdict = "incomplete",
                       .visits = {fixture::visit_of(given, 4, 9)},
                       .raw = ""};
  sweep.visits[0].unit.node = "renamed";
  ASSERT_TRUE(history.add(sweep));
  auto report = report_of(given);
  report.as_of = sweep.night;
  const auto overview = overview_of(history, report, 11);
  ASSERT_TRUE(overview) << overview.error().error.text();
  ASSERT_EQ(overview->nodes.size(), 7U);
  EXPECT_EQ(overview->nodes[4].name, "n5");
  EXPECT_EQ(overview->nodes[4].leaf, "l1");
  EXPECT_EQ(overview->nodes[4].nights[9], NodeNight::measured);
  EXPECT_EQ(overview->nodes[4].nights[10], NodeNight::unseen);
  EXPECT_EQ(overview->nodes[6].name, "renamed");
  EXPECT_EQ(overview->nodes[6].nights[9], NodeNight::unseen);
  EXPECT_EQ(overview->nodes[6].nights[10], NodeNight::measured);
  EXPECT_NE(fleet_page(*overview, report).find("renamed"), std::string::npos);
}

TEST(nights, the_flagged_metric_of_a_unit_and_the_flagged_unit_of_a_node_come_first) {
  const Folder folder;
  const Nights given;
  auto history = history_of(folder.path + "/h.db", given);
  history::UnitVisit before = fixture::visit_of(given, given.slow, 9), other = before;
  before.figures[0].metric.name = "a.first";
  other.unit.id = "gpu:0";
  ASSERT_TRUE(history.add({.run_sha256 = std::string(64, 'c'),
                           .started = "2026-03-10T23:30:00.000Z",
                           .night = fixture::kFirst + std::chrono::days(9),
                           .verdict = "incomplete",
                           .visits = {before, other},
                           .raw = ""}));
  const auto trends = trends_of(history, report_of(given), "n3", 10);
  ASSERT_TRUE(trends);
  ASSERT_EQ(trends->size(), 2U);
  EXPECT_EQ(trends->front().unit.id, "gpu:103");
  ASSERT_EQ(trends->front().series.size(), 2U);
  EXPECT_EQ(trends->front().series[0].metric.name, "cuda_gemm.rate");
  EXPECT_EQ(trends->front().series[1].metric.name, "a.first");
}

TEST(nights, an_unknown_unit_is_an_error_with_the_nearest_name) {
  const Folder folder;
  const Nights given;
  const auto trends = trends_of(history_of(folder.path + "/h.db", given), report_of(given), "gpu:1003", 10);
  ASSERT_FALSE(trends);
  EXPECT_NE(trends.error().error.hint.find("gpu:10"), std::string::npos);
  EXPECT_EQ(trends.error().exit_code, 2);
}

TEST(pages, the_page_of_the_fleet_names_the_flag_and_escapes_what_comes_from_outside) {
  const Folder folder;
  const Nights given;
  auto report = report_of(given);
  report.flags[0].words = "<script>alert(1)</script>";
  report.coverage.units = 3;
  report.groups = {{.element = "unit gpu:103", .flags = {"a"}}, {.element = "leaf l0", .flags = {"b", "c"}}};
  const auto overview = overview_of(history_of(folder.path + "/h.db", given), report, 10);
  ASSERT_TRUE(overview);
  const auto page = fleet_page(*overview, report);
  EXPECT_NE(page.find("gpu:103"), std::string::npos);
  EXPECT_NE(page.find("-10.0 % (-11.0 to -9.0 %)"), std::string::npos);
  EXPECT_NE(page.find("units: a bad night of all of them looks like a fault of each"), std::string::npos)
      << "what so few units can show";
  EXPECT_NE(page.find("<ul><li>leaf l0: 2 flags</li></ul>"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("SIMULATION"), std::string::npos);
}

TEST(pages, a_simulation_says_so) {
  const Folder folder;
  const Nights given{.simulated = true};
  const auto history = history_of(folder.path + "/h.db", given);
  const auto overview = overview_of(history, report_of(given), 10);
  ASSERT_TRUE(overview);
  EXPECT_NE(fleet_page(*overview, report_of(given)).find("No figure on this page was measured."), std::string::npos);
  const auto trends = trends_of(history, report_of(given), "n1", 10);
  ASSERT_TRUE(trends);
  EXPECT_NE(unit_page("n1", *trends, report_of(given), 10).find("SIMULATION"), std::string::npos);
}

TEST(pages, the_page_of_a_unit_has_every_number_behind_its_flag) {
  const Folder folder;
  const Nights given;
  const auto trends = trends_of(history_of(folder.path + "/h.db", given), report_of(given), "gpu:103", 10);
  ASSERT_TRUE(trends);
  const auto page = unit_page("gpu:103", *trends, report_of(given), 10);
  for (const char* number : {"C = 20 beyond h = 14.9", "T = -40, z = 5 among 5 peers", "n = 6 visits",
                             "Take n3 out of service", "Action for the figure"})
    EXPECT_NE(page.find(number), std::string::npos) << number;
  EXPECT_NE(page.find("class=\"onset\""), std::string::npos);
  EXPECT_EQ(unit_page("gpu:103", *trends, report_of(given), 90), page) << "nights before the first visit are shown";
  EXPECT_NE(page.find("class=\"expected\""), std::string::npos);
}

TEST(pages, figures_that_no_machine_measures_are_bounded) {
  for (const double rate : {4.9e-324, 1e-310, 1e300, 1.7e308}) {
    const Folder folder;
    const Nights given{.rate = rate};
    const auto history = history_of(folder.path + "/h.db", given);
    const auto trends = trends_of(history, report_of(given), "gpu:103", 10);
    ASSERT_TRUE(trends) << rate;
    const auto page = unit_page("gpu:103", *trends, report_of(given), 10);
    EXPECT_LT(page.size(), 30'000U) << rate;
    EXPECT_EQ(page.find(std::string(40, '0')), std::string::npos) << rate;
    for (const char* bad : {"nan", "inf "}) EXPECT_EQ(page.find(bad), std::string::npos) << rate;
  }
}

TEST(pages, ten_thousand_nodes_are_shown_in_groups_and_the_flagged_ones_by_name) {
  Overview overview;
  for (int night = 0; night < 90; ++night) overview.nights.push_back(fixture::kFirst + std::chrono::days(night));
  for (int node = 0; node < 10'000; ++node) {
    overview.nodes.push_back({.name = fixture::node_name(node),
                              .leaf = fmt::format("l{:03}", node / 16),
                              .rack = "",
                              .nights = std::vector<NodeNight>(90, NodeNight::measured)});
    for (std::size_t night = static_cast<std::size_t>(node) % 5; night < 90; night += 5)
      overview.nodes.back().nights[night] = NodeNight::not_due;
  }
  const auto page = fleet_page(overview, report_of({}));
  EXPECT_LT(page.size(), 2U << 20);
  EXPECT_NE(page.find("leaf l624 (16)"), std::string::npos);
  EXPECT_NE(page.find(">n3</text>"), std::string::npos);
}

}  // namespace
}  // namespace assay::nightly
