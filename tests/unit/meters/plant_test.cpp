// What must fail in a plant fails and is named; an honest plant passes. All figures come from the model in plant.h.
#include "tests/unit/meters/plant.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "probes/core/statistics.h"
#include "probes/meters/agreement.h"
#include "tests/unit/meters/facility.h"

namespace assay::simulate {
namespace {

constexpr double kBmcAccuracy = 0.03, kStripAccuracy = 0.01;
constexpr int kHonestPlants = 20;

PlantNode loaded() { return {.load = three_levels()}; }

std::vector<meters::MeterReading> at_the_wall(const PlantNode& node, const View& view) {
  return seen([&](double t) { return node.drawn_at(t); }, view, 0, kEnd_s);
}

/// Two feeds with half of a node each, as a strip sees them.
std::vector<meters::MeterReading> feeds_of(const PlantNode& node, View view) {
  const auto half = [&](double t) { return node.drawn_at(t) / 2; };
  const auto a = seen(half, view, 0, kEnd_s);
  ++view.seed;
  const std::vector<std::vector<meters::MeterReading>> both = {a, seen(half, view, 0, kEnd_s)};
  return meters::sum_of(both);
}

meters::Agreement compare(const std::vector<meters::MeterReading>& meter,
                          const std::vector<meters::MeterReading>& reference) {
  return meters::agreement_of(meter, reference, level_begins(), {}, std::hypot(kBmcAccuracy, kStripAccuracy));
}

meters::Line line_of(const meters::Agreement& agreement) {
  const auto line = meters::line_through(agreement.reference_w, agreement.mean_w);
  return line.value_or(meters::Line{});
}

bool has(const meters::Agreement& agreement, meters::Doubt doubt) {
  return std::ranges::find(agreement.doubts, doubt, &meters::NamedDoubt::doubt) != agreement.doubts.end();
}

TEST(Plant, twenty_honest_plants_of_twenty_agree) {
  for (int seed = 0; seed < kHonestPlants; ++seed) {
    const auto s = static_cast<std::uint64_t>(seed);
    // BMC within 2 % and strip within 0.7 % of the truth, as a root of squares of their accuracies allows.
    const auto bmc = at_the_wall(loaded(), {.gain = 1 + 0.02 * plant_noise(s, 1), .window_s = 5, .seed = 100 + s});
    const auto strip =
        feeds_of(loaded(), {.gain = 1 + 0.007 * plant_noise(s, 2), .window_s = 1, .quantum = 5, .seed = 200 + s});
    const auto agreement = compare(bmc, strip);
    EXPECT_EQ(agreement.finding, meters::Finding::agrees)
        << seed << " " << meters::text_of(agreement.doubts) << agreement.worst_ratio;
    EXPECT_GT(line_of(agreement).r_squared, 0.999);
  }
}

TEST(Plant, an_injected_gain_of_minus_8_percent_is_a_difference_and_is_recovered_within_1_percent) {
  for (std::uint64_t seed = 0; seed < kHonestPlants; ++seed) {
    const auto agreement = compare(at_the_wall(loaded(), {.gain = 0.92, .window_s = 5, .seed = seed}),
                                   feeds_of(loaded(), {.quantum = 5, .seed = 50 + seed}));
    EXPECT_EQ(agreement.finding, meters::Finding::differs);
    EXPECT_NEAR(line_of(agreement).gain, 0.92, 0.0092);
  }
}

TEST(Plant, the_gain_of_one_node_stands_out_of_the_fleet) {
  std::vector<double> gains;
  for (int i = 0; i < 8; ++i) {
    const PlantNode node = loaded();
    const auto seed = static_cast<std::uint64_t>(i);
    const auto chips = seen([&](double t) { return node.chips_at(t); }, {.noise = 0.01, .seed = seed}, 0, kEnd_s);
    const auto bmc = at_the_wall(node, {.gain = i == 3 ? 0.92 : 1.0, .window_s = 5, .seed = 9 + seed});
    std::vector<double> x, y;
    for (const double begin_s : level_begins()) {
      x.push_back(meters::level_power_w(chips, begin_s, {}).value_or(0));
      y.push_back(meters::level_power_w(bmc, begin_s, {}).value_or(0));
    }
    const auto line = meters::line_through(x, y);
    ASSERT_TRUE(line);
    EXPECT_GT(line->offset_w, 0);
    gains.push_back(line->gain);
  }
  const double middle = median(gains);
  for (std::size_t i = 0; i < gains.size(); ++i) EXPECT_NEAR(gains[i] / middle, i == 3 ? 0.92 : 1, 0.01) << i;
}

TEST(Plant, two_swapped_outlets_are_found_by_loading_one_node_after_the_other) {
  constexpr int kNodes = 4;
  std::map<std::string, std::vector<meters::MeterReading>> readings;
  std::map<std::string, std::string> map;
  std::vector<meters::LoadedAlone> loads;
  for (int i = 0; i < kNodes; ++i) {
    const double begin_s = 120.0 * i + 60;
    const std::string node = "n" + std::to_string(i);
    const PlantNode one{.load = {{begin_s, 1}, {begin_s + 60, 0}}};
    for (const std::string strip : {"a", "b"}) {
      const int cabled = strip == "a" && i >= 2 ? 5 - i : i;  // on strip a the plugs of n2 and n3 are swapped
      readings[strip + "/" + std::to_string(cabled)] =
          seen([&](double t) { return one.drawn_at(t) / 2; }, {.seed = static_cast<std::uint64_t>(i)}, 0, 600);
      map[strip + "/" + std::to_string(i)] = node;
    }
    loads.push_back({.node = node, .idle_s = begin_s - 60, .loaded_s = begin_s});
  }
  const auto findings = meters::prove_outlets(readings, map, loads);
  ASSERT_EQ(findings.size(), 4U);
  EXPECT_TRUE(findings[0].proved());
  EXPECT_TRUE(findings[1].proved());
  EXPECT_FALSE(findings[2].proved());
  EXPECT_EQ(findings[2].moved, (std::vector<std::string>{"a/3", "b/2"}));
  EXPECT_FALSE(findings[3].proved());
}

TEST(Plant, tens_of_watts_taken_for_watts_are_mis_scaled_by_voltage_current_and_factor) {
  const PlantNode node = loaded();
  const auto strip = at_the_wall(node, {.quantum = 10, .scale = 0.1});
  EXPECT_EQ(compare(at_the_wall(node, {}), strip).finding, meters::Finding::differs);
  const double true_w = node.drawn_at(1700);
  EXPECT_FALSE(meters::scale_doubt(true_w * 1.01, 230, true_w / 230 / 0.98, 0.98));
  const auto doubt = meters::scale_doubt(true_w / 10, 230, true_w / 230 / 0.98, 0.98);
  ASSERT_TRUE(doubt);
  EXPECT_EQ(doubt->doubt, meters::Doubt::mis_scaled);
  EXPECT_NE(doubt->figures.find("0.1 times"), std::string::npos) << doubt->figures;
}

TEST(Plant, a_meter_that_averages_over_a_minute_sees_no_step_and_a_fast_one_its_rise) {
  constexpr double kRise_s = 20;
  const auto step = [](double t) { return 1000 + 5000 * std::clamp((t - 100) / kRise_s, 0.0, 1.0); };
  const auto slow = meters::rise_time_s(seen(step, {.noise = 0, .window_s = 60}, 0, 300), 100);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().doubt, meters::Doubt::slow);
  const auto fast = meters::rise_time_s(seen(step, {.noise = 0.0005, .window_s = 1}, 0, 300), 100);
  ASSERT_TRUE(fast) << fast.error().figures;
  EXPECT_NEAR(*fast, 0.8 * kRise_s, 0.08 * kRise_s);
  const auto silent = meters::rise_time_s(seen(step, {.states_averaging = false}, 0, 300), 100);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().figures, "its averaging window is not stated");
}

TEST(Plant, a_heat_that_is_13_percent_low_does_not_balance) {
  constexpr double kFlow = 42.0 / 60000;  // 42 L/min, as in the mockup of a cooling unit that DMTF publishes
  EXPECT_NEAR(meters::heat_of_water_w(kFlow, 10), 29.2e3, 100);
  const auto doubt = meters::heat_doubt(25.48e3, kFlow, 10);
  ASSERT_TRUE(doubt);
  EXPECT_NE(doubt->figures.find("-12.7 %"), std::string::npos) << doubt->figures;
  EXPECT_FALSE(meters::heat_doubt(meters::heat_of_water_w(kFlow, 10) * 0.94, kFlow, 10));
}

TEST(Plant, a_coolant_that_comes_back_colder_is_doubtful_and_sensors_of_an_idle_one_are_not) {
  constexpr double kFlow = 42.0 / 60000;
  const auto doubt = meters::heat_doubt(29.2e3, kFlow, -10);
  ASSERT_TRUE(doubt);
  EXPECT_NE(doubt->figures.find("comes back 10 K colder than it goes"), std::string::npos) << doubt->figures;
  EXPECT_FALSE(meters::heat_doubt(29.2e3, kFlow, -0.1));
}

TEST(Plant, a_soak_that_ends_before_it_is_steady_is_not_called_steady) {
  PlantNode node{.fans_w = 900, .heat_time_s = 900, .load = {{0, 1}}};
  const auto power = [&](double t) { return node.drawn_at(t); };
  const auto hot = [&](double t) { return 30 + 50 * node.heat_at(t); };
  const auto look = [&](double end_s) {
    return meters::steady(seen(power, {}, 0, end_s),
                          {{"gpu", seen(hot, {.noise = 0, .quantum = 0.5}, 0, end_s, Quantity::supply_temperature)}});
  };
  EXPECT_EQ(look(500).finding, meters::Finding::undecided);
  EXPECT_EQ(look(1200).finding, meters::Finding::differs);
  EXPECT_EQ(look(2400).finding, meters::Finding::differs);
  EXPECT_EQ(look(6000).finding, meters::Finding::agrees) << look(6000).figures;
}

TEST(Plant, throttling_in_one_tray_is_found_and_named) {
  const auto found = meters::unthrottled({{"n01", 0}, {"n02", 1.25}, {"n03", 0}});
  EXPECT_EQ(found.finding, meters::Finding::differs);
  EXPECT_EQ(found.figures, "n02 was throttled for 1.25 s after the steady mark");
  EXPECT_EQ(meters::unthrottled({{"n01", 0}}).finding, meters::Finding::agrees);
  EXPECT_EQ(meters::unthrottled({}).finding, meters::Finding::undecided);
}

TEST(Plant, a_dead_feed_is_named_and_the_sum_without_it_decides_nothing) {
  const PlantNode node = loaded();
  const auto half = [&](double t) { return node.drawn_at(t) / 2; };
  const std::map<std::string, std::vector<meters::MeterReading>> feeds = {
      {"A", seen(half, {}, 0, kEnd_s)}, {"B", seen(half, {.dead_from_s = 1000}, 0, kEnd_s)}};
  const auto found = meters::feeds_alive(feeds);
  EXPECT_EQ(found.finding, meters::Finding::differs);
  EXPECT_EQ(found.figures, "feed B carried no power in 800 of 1800 readings");
  EXPECT_EQ(meters::feeds_alive({{"A", feeds.at("A")}, {"B", feeds.at("A")}}).finding, meters::Finding::agrees);
  const std::vector<std::vector<meters::MeterReading>> both = {feeds.at("A"), feeds.at("B")};
  EXPECT_NE(compare(at_the_wall(node, {}), meters::sum_of(both)).finding, meters::Finding::agrees);
}

TEST(Plant, an_absent_or_disabled_leak_detector_is_found) {
  EXPECT_EQ(meters::leak_detectors(2, {{"tray", true}}).finding, meters::Finding::differs);
  EXPECT_EQ(meters::leak_detectors(2, {{"tray", true}, {"manifold", false}}).figures,
            "leak detectors not enabled: manifold");
  EXPECT_EQ(meters::leak_detectors(2, {{"tray", true}, {"manifold", true}}).finding, meters::Finding::agrees);
}

TEST(Plant, an_hour_makes_no_pue) {
  EXPECT_EQ(meters::pue_claim(1).finding, meters::Finding::differs);
  EXPECT_EQ(meters::pue_claim(8760).finding, meters::Finding::agrees);
}

TEST(Plant, what_is_doubtful_is_undecided_and_named) {
  struct Case {
    View view;
    meters::Doubt doubt;
  };
  const Case cases[] = {
      {{.stuck_from_s = 0.0}, meters::Doubt::stuck},      {{.stale_from_s = 100.0}, meters::Doubt::stale},
      {{.dead_from_s = 0.0}, meters::Doubt::absent},      {{.quantum = 500}, meters::Doubt::coarse},
      {{.constant = 3000.0}, meters::Doubt::synthesised}, {{.window_s = 120}, meters::Doubt::slow},
  };
  for (const auto& [view, doubt] : cases) {
    const auto agreement = compare(at_the_wall(loaded(), view), at_the_wall(loaded(), {}));
    EXPECT_EQ(agreement.finding, meters::Finding::undecided) << word_of(doubt);
    EXPECT_TRUE(has(agreement, doubt)) << word_of(doubt) << ", found: " << meters::text_of(agreement.doubts);
  }
}

TEST(Plant, sixteen_bits_that_are_too_few_for_a_rack_are_seen) {
  const auto rack = [](double t) { return 60000 + 10 * t; };
  const auto readings = seen(rack, {.noise = 0, .wraps_16_bit = true}, 0, 1000);
  const auto doubts = meters::doubts_of(readings, {.integers_are_16_bit = true});
  ASSERT_FALSE(doubts.empty());
  EXPECT_EQ(doubts.front().doubt, meters::Doubt::wrapped);
}

TEST(Plant, a_lag_of_seconds_does_not_matter_and_a_missing_level_does) {
  EXPECT_EQ(compare(at_the_wall(loaded(), {.lag_s = 8, .window_s = 5}), feeds_of(loaded(), {})).finding,
            meters::Finding::agrees);
  const auto wall = at_the_wall(loaded(), {});
  const auto begins = level_begins();
  EXPECT_EQ(meters::agreement_of(wall, wall, std::span(begins).first(2), {}, 0.05).finding, meters::Finding::undecided);
  const PlantNode idle;
  EXPECT_EQ(compare(at_the_wall(idle, {}), at_the_wall(idle, {})).finding, meters::Finding::undecided);
}

TEST(Plant, missing_readings_leave_a_window_undecided) {
  auto bmc = at_the_wall(loaded(), {});
  std::erase_if(bmc, [](const meters::MeterReading& one) { return one.taken_s > 400 && one.taken_s < 430; });
  const auto agreement = compare(bmc, at_the_wall(loaded(), {}));
  EXPECT_EQ(agreement.finding, meters::Finding::undecided);
  EXPECT_TRUE(has(agreement, meters::Doubt::gaps)) << meters::text_of(agreement.doubts);
}

TEST(Plant, a_budget_is_kept_passed_or_not_reached) {
  const auto full = seen([](double) { return 9800.0; }, {.noise = 0.001}, 0, 60);
  EXPECT_EQ(meters::budget(full, 10000).finding, meters::Finding::agrees);
  EXPECT_EQ(meters::budget(full, 9500).finding, meters::Finding::differs);
  EXPECT_EQ(meters::budget(full, 12000).finding, meters::Finding::undecided);
  EXPECT_EQ(meters::budget(seen([](double) { return 9800.0; }, {.constant = 9800.0}, 0, 60), 10000).finding,
            meters::Finding::undecided);
}

TEST(Plant, phases_are_balanced_or_not) {
  EXPECT_EQ(meters::phase_balance(std::vector{20.0, 21.0, 19.0}, 0.1).finding, meters::Finding::agrees);
  EXPECT_EQ(meters::phase_balance(std::vector{20.0, 30.0, 10.0}, 0.1).finding, meters::Finding::differs);
  EXPECT_EQ(meters::phase_balance(std::vector{0.0, 0.0, 0.0}, 0.1).finding, meters::Finding::undecided);
}

TEST(Plant, the_olympic_score_drops_the_highest_and_the_lowest) { EXPECT_EQ(meters::olympic({1, 100, 3, 2, 4}), 3); }

}  // namespace
}  // namespace assay::simulate
