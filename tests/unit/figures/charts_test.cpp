// Charts: the place of every cell, the worst of many, the size of the page, and cells without a measurement.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reports/figures/pair_chart.h"
#include "reports/figures/rail_chart.h"
#include "tests/unit/figures/chart_fixture.h"

namespace assay::figures {
namespace {

using fixture::contains;
using fixture::demanded;
using fixture::judged;
using fixture::name;
using fixture::site_of;

/// Every pair of `nodes` nodes: all pass by half of the limit but those in `bad`, which miss it by half.
struct Fleet {
  plan::Plan plan;
  judge::Results results;

  Fleet(std::size_t nodes, std::size_t per_leaf, const std::vector<std::string>& bad) {
    plan.site = site_of(nodes, per_leaf);
    plan.profile.requirements = {demanded("r", "bandwidth")};
    for (std::size_t a = 0; a < nodes; ++a) {
      for (std::size_t b = a + 1; b < nodes; ++b) {
        const std::string pair = name(a) + "+" + name(b);
        const bool is_bad = std::ranges::find(bad, pair) != bad.end();
        plan::Step step;
        step.id = pair;
        step.nodes = {name(a), name(b)};
        plan.steps.push_back(step);
        results.push_back(judged(pair, is_bad ? judge::Outcome::fail : judge::Outcome::pass, is_bad ? 50 : 150));
      }
    }
  }

  [[nodiscard]] std::vector<const judge::Result*> pointers() const {
    std::vector<const judge::Result*> all;
    for (const auto& one : results) all.push_back(&one);
    return all;
  }
  [[nodiscard]] std::vector<PairResult> pairs() const {
    std::vector<PairResult> all;
    for (std::size_t i = 0; i < results.size(); ++i)
      all.push_back(
          {.row = plan.steps[i].nodes[0], .column = plan.steps[i].nodes[1], .directed = false, .result = &results[i]});
    return all;
  }
  [[nodiscard]] Chart chart() const {
    return pair_chart(plan, index_of_steps(plan), plan.profile.requirements.front(), pointers(), {});
  }
};

Shade shade_at(const HeatMap& map, std::size_t row, std::size_t column) {
  const auto cell =
      std::ranges::find_if(map.cells, [&](const HeatCell& one) { return one.row == row && one.column == column; });
  if (cell == map.cells.end()) throw std::out_of_range("no cell there");
  return cell->shade;
}

TEST(Shade, follows_the_distance_to_the_acceptance_limit) {
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::pass, 121)), Shade::pass_wide);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::pass, 120)), Shade::pass_middle);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::pass, 105)), Shade::pass_narrow);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::conditional_pass, 100.5)), Shade::guard_band);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::conditional_fail, 99.5)), Shade::guard_band);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::fail, 95)), Shade::fail_near);
  const auto undecided = [](judge::Outcome outcome, double margin) {  // 47.7 of 740: however wide the guard band is
    judge::Result result = judged("a+b", outcome, 100 * (1 + margin));
    result.margin = margin;
    return shade_words(shade_of(result), true);
  };
  EXPECT_EQ(undecided(judge::Outcome::conditional_fail, -0.92), "undecided, misses limit");
  EXPECT_EQ(undecided(judge::Outcome::conditional_fail, -0.05), "undecided, limit is near");
  EXPECT_EQ(undecided(judge::Outcome::conditional_pass, 0.05), "undecided, limit is near");
  EXPECT_EQ(undecided(judge::Outcome::conditional_pass, 0.5), "undecided, meets limit");
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::fail, 91)), Shade::fail_far);
}

TEST(Shade, a_good_number_that_proves_nothing_is_never_a_pass) {
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::inconclusive, 1000)), Shade::inconclusive);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::not_measured, {})), Shade::not_measured);
  EXPECT_EQ(shade_of(judged("a+b", judge::Outcome::error, {})), Shade::error);
}

TEST(Shade, of_a_limit_of_zero_there_is_no_distance) {
  judge::Result clean = judged("a+b", judge::Outcome::pass, 0);
  clean.limit_low = clean.acceptance_low = {};
  clean.limit_high = clean.acceptance_high = 0;
  EXPECT_FALSE(acceptance_margin(clean));
  EXPECT_EQ(shade_of(clean), Shade::pass_wide);
  EXPECT_EQ(shade_words(Shade::pass_wide, false), "pass");
}

TEST(Shade, known_failures_come_before_what_is_unknown_and_that_before_anything_good) {
  const judge::Result pass = judged("a+b", judge::Outcome::pass, 150);
  const judge::Result missing = judged("a+b", judge::Outcome::not_measured, {});
  const judge::Result fail = judged("a+b", judge::Outcome::fail, 90);
  EXPECT_TRUE(is_worse(missing, pass));
  EXPECT_TRUE(is_worse(fail, missing));
  EXPECT_TRUE(is_worse(judged("a+b", judge::Outcome::fail, 80), fail));
  EXPECT_FALSE(is_worse(pass, pass));
}

TEST(NodePlaces, of_512_nodes_are_64_that_never_mix_leaves) {
  const site::Site site = site_of(512, 32);
  const NodePlaces places = node_places(site);
  EXPECT_EQ(places.axis.labels.size(), 64U);
  EXPECT_EQ(places.axis.bands.size(), 16U);
  EXPECT_EQ(places.largest, 8U);
  EXPECT_EQ(places.of_node.at("n031"), 3U);
  EXPECT_EQ(places.of_node.at("n032"), 4U);
  EXPECT_EQ(places.axis.labels[4], "n032 – n039");
}

TEST(NodePlaces, nodes_of_one_leaf_stand_side_by_side_whatever_the_order_of_the_site) {
  site::Site site = site_of(4, 0);
  for (std::size_t i = 0; i < 4; ++i) site.nodes[i].leaf = i % 2 == 0 ? "even" : "odd";
  const NodePlaces places = node_places(site);
  EXPECT_EQ(places.axis.labels, (std::vector<std::string>{"n000", "n002", "n001", "n003"}));
}

TEST(NodePlaces, more_leaves_than_places_still_give_no_more_places) {
  const site::Site site = site_of(1000, 2);
  const NodePlaces places = node_places(site);
  EXPECT_LE(places.axis.labels.size(), kMostHeatPlaces);
  EXPECT_TRUE(places.axis.bands.empty());
  EXPECT_EQ(places.of_node.size(), 1000U);
}

TEST(PairMap, a_pair_stands_at_both_places_with_its_number) {
  const Fleet fleet(8, 4, {"n002+n005"});
  const HeatMap map = pair_map(fleet.pairs(), node_places(fleet.plan.site));
  EXPECT_EQ(map.cells.size(), 56U);
  EXPECT_EQ(shade_at(map, 2, 5), Shade::fail_far);
  EXPECT_EQ(shade_at(map, 5, 2), Shade::fail_far);
  EXPECT_EQ(shade_at(map, 2, 4), Shade::pass_wide);
  EXPECT_EQ(map.cells.front().text, "150.0");
}

TEST(PairMap, one_bad_pair_of_130816_shows_in_its_square) {
  const Fleet fleet(512, 32, {"n100+n300"});
  const HeatMap map = pair_map(fleet.pairs(), node_places(fleet.plan.site));
  EXPECT_EQ(map.cells.size(), 64U * 64U);
  EXPECT_EQ(shade_at(map, 12, 37), Shade::fail_far);
  EXPECT_EQ(shade_at(map, 37, 12), Shade::fail_far);
  EXPECT_EQ(std::ranges::count(map.cells, Shade::fail_far, &HeatCell::shade), 2);
  EXPECT_TRUE(map.cells.front().text.empty());
}

TEST(PairMap, a_directed_pair_stands_at_its_own_place_alone) {
  const judge::Result slow = judged("n000+n001", judge::Outcome::fail, 50);
  const site::Site site = site_of(2, 0);
  const HeatMap map =
      pair_map({{.row = "n001", .column = "n000", .directed = true, .result = &slow}}, node_places(site));
  ASSERT_EQ(map.cells.size(), 1U);
  EXPECT_EQ(map.cells[0].row, 1U);
  EXPECT_EQ(map.cells[0].column, 0U);
}

TEST(PairChart, at_512_nodes_is_small_and_says_what_was_put_together) {
  const Chart chart = Fleet(512, 32, {"n100+n300"}).chart();
  EXPECT_LT(chart.svg.size(), 150'000U);
  EXPECT_TRUE(contains(chart.caption, "130816 of 130816 pairs of 512 nodes"));
  EXPECT_TRUE(contains(chart.caption, "up to 8 × 8 nodes and shows the worst cell among them, not a mean"));
  EXPECT_TRUE(contains(chart.caption, "130815 pass, 1 fail"));
  EXPECT_TRUE(contains(chart.svg, "n100+n300 50 B/s"));
  EXPECT_TRUE(contains(chart.svg, "<desc>A matrix of 512 nodes. 130815 pass, 1 fail.</desc>"));
}

TEST(PairChart, names_a_node_that_is_bad_with_most_of_its_partners) {
  const Chart chart = Fleet(8, 0, {"n000+n003", "n001+n003", "n002+n003", "n003+n004", "n003+n005"}).chart();
  EXPECT_TRUE(contains(chart.caption, "Nodes with most cells not passing: n003 (5 of 7)."));
  EXPECT_TRUE(contains(chart.svg, "n000+n003 50 B/s"));
}

TEST(PairChart, what_was_not_measured_is_drawn_with_strokes) {
  Fleet fleet(8, 0, {});
  fleet.results[0] = judged("n000+n001", judge::Outcome::not_measured, {});
  const Chart chart = fleet.chart();
  EXPECT_TRUE(contains(chart.svg, "class=\"stroke s-not_measured\" d=\"M1 0m0 1l1-1M0 1m0 1l1-1\""));
  EXPECT_TRUE(contains(chart.svg, ">not measured<"));
  EXPECT_TRUE(contains(chart.caption, "27 pass, 1 not measured"));
}

TEST(PairChart, forward_and_backward_are_one_matrix_from_sender_to_receiver) {
  Fleet fleet(2, 0, {});
  fleet.plan.profile.requirements = {demanded("f", "forward_bandwidth"), demanded("b", "backward_bandwidth")};
  const auto& requirements = fleet.plan.profile.requirements;
  EXPECT_EQ(other_direction(fleet.plan.profile, requirements[0]), &requirements[1]);
  EXPECT_EQ(other_direction(fleet.plan.profile, requirements[1]), &requirements[0]);
  const judge::Result slow_back = judged("n000+n001", judge::Outcome::fail, 50);
  const Chart chart =
      pair_chart(fleet.plan, index_of_steps(fleet.plan), requirements[0], fleet.pointers(), {&slow_back});
  EXPECT_TRUE(contains(chart.svg, "s-fail_far\" d=\"M0 1h1v1h-1z\""));
  EXPECT_TRUE(contains(chart.svg, "s-pass_wide\" d=\"M1 0h1v1h-1z\""));
  EXPECT_TRUE(contains(chart.caption, "Row: sending node"));
  EXPECT_TRUE(contains(chart.svg, ">n001 to n000 50 B/s<"));
}

TEST(PairChart, pairs_within_many_nodes_show_the_worst_nodes) {
  plan::Plan plan;
  plan.site = site_of(30, 0);
  judge::Results results;
  for (std::size_t node = 0; node < 30; ++node) {
    for (const char* pair : {"GPU-a>GPU-b", "GPU-b>GPU-a"}) {
      results.push_back(
          judged(pair, node == 29 ? judge::Outcome::fail : judge::Outcome::pass, node == 29 ? 50 : 150, "alone"));
      results.back().node = name(node);
    }
  }
  std::vector<const judge::Result*> pointers;
  for (const auto& one : results) pointers.push_back(&one);
  const Chart chart = pair_chart(plan, index_of_steps(plan), demanded("r", "write_bandwidth"), pointers, {});
  EXPECT_TRUE(contains(chart.caption, "Shown: the 24 of 30 nodes with the worst cells"));
  EXPECT_TRUE(contains(chart.svg, ">n029<"));
  EXPECT_TRUE(contains(chart.caption, "58 pass, 2 fail"));
}

TEST(PairChart, hostile_names_stay_text) {
  Fleet fleet(2, 0, {});
  fleet.results[0].subject.id = "<script>x</script>";
  const Chart chart = fleet.chart();
  EXPECT_FALSE(contains(chart.svg + chart.caption, "<script"));
}

TEST(RailChart, shows_the_worst_port_of_each_rail_and_leaf) {
  plan::Plan plan;
  plan.site = site_of(8, 4);
  judge::Results results;
  for (std::size_t node = 0; node < 8; ++node) {
    for (const char* port : {"mlx5_2", "mlx5_10"}) {
      const bool bad = node == 5 && std::string_view(port) == "mlx5_10";
      results.push_back(judged(port, bad ? judge::Outcome::fail : judge::Outcome::pass, bad ? 50 : 150, "alone"));
      results.back().subject.kind = "nic";
      results.back().node = name(node);
    }
  }
  std::vector<const judge::Result*> pointers;
  for (const auto& one : results) pointers.push_back(&one);
  const Chart chart = rail_chart(plan, index_of_steps(plan), demanded("r", "port_rate"), pointers);
  EXPECT_TRUE(contains(chart.svg, "s-fail_far\" d=\"M1 1h1v1h-1z\""));  // mlx5_10 after mlx5_2; the second leaf
  EXPECT_TRUE(contains(chart.caption, "15 pass, 1 fail"));
  EXPECT_TRUE(contains(chart.svg, ">n005 · nic mlx5_10 50 B/s<"));
  plan.site = site_of(8, 0);
  EXPECT_TRUE(rail_chart(plan, index_of_steps(plan), demanded("r", "port_rate"), pointers).svg.empty());
}

TEST(RailChart, a_node_that_was_not_measured_spoils_every_rail_of_its_leaf) {
  plan::Plan plan;
  plan.site = site_of(2, 1);
  judge::Results results = {judged("mlx5_0", judge::Outcome::pass, 150, "alone"),
                            judged("n001", judge::Outcome::not_measured, {}, "alone")};
  results[0].subject.kind = "nic";
  results[0].node = "n000";
  results[1].subject.kind = "node";
  const Chart chart = rail_chart(plan, index_of_steps(plan), demanded("r", "port_rate"), {&results[0], &results[1]});
  EXPECT_TRUE(contains(chart.svg, "s-not_measured\" d=\"M1 0h1v1h-1z\""));
}

TEST(RailChart, a_pair_on_one_rail_counts_for_the_leaves_of_both_nodes) {
  const Fleet fleet(2, 1, {});
  judge::Result slow = judged("n000+n001@rail-3", judge::Outcome::fail, 50, "n000+n001");
  EXPECT_EQ(rail_of(slow), "rail-3");
  const Chart chart = rail_chart(fleet.plan, index_of_steps(fleet.plan), demanded("r", "bandwidth"), {&slow});
  EXPECT_TRUE(contains(chart.svg, "s-fail_far\" d=\"M0 0h1v1h-1zM1 0h1v1h-1z\""));
}

TEST(Words, small_shares_in_cells_have_a_power_of_ten) {
  judge::Result share = judged("a+b", judge::Outcome::pass, 0.000962);
  const judge::Result* one = &share;
  const Scale scale = cell_scale({&one, 1}, "1");
  EXPECT_EQ(cell_text(share, scale) + " " + scale.unit, "9.620 10^-4");
}

}  // namespace
}  // namespace assay::figures
