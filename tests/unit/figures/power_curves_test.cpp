// Curves of soaks, of steps and of loaded memory: the mark lies between warm-up and samples, steps lie one on another,
// points lie by rising rate, and nothing is drawn of nothing.
#include <tuple>

#include <gtest/gtest.h>

#include "reports/figures/course_chart.h"
#include "reports/figures/curve.h"
#include "reports/figures/record_charts.h"
#include "tests/unit/figures/chart_fixture.h"

namespace assay::figures {
namespace {

using fixture::contains;
using fixture::demanded;
using fixture::judged;

const Subject kPackage{.kind = "cpu", .id = "package-0"};

Measurement measured(const std::string& metric, const std::string& unit, std::vector<double> samples,
                     const Subject& subject = {}, std::vector<double> warmup = {}) {
  Measurement one;
  one.metric = metric;
  one.unit = unit;
  one.subject = subject;
  one.samples = std::move(samples);
  one.warmup = std::move(warmup);
  return one;
}

Condition told(const std::string& name, Value value, const Subject& subject = {}) {
  return {.name = name, .subject = subject, .value = std::move(value)};
}

/// Two requirements on one measurement of `probe`, of which one record is there.
struct Recorded {
  Recorded(const std::string& probe, Record record) {
    plan.profile.requirements = {demanded("first", "rise_time"), demanded("second", "settling_time")};
    for (auto& one : plan.profile.requirements) one.probe = probe;
    records["n01"] = {std::move(record)};
    result = judged("n01", judge::Outcome::pass, 200, "n01");
  }
  [[nodiscard]] std::vector<Chart> heat(std::size_t requirement = 0) const {
    return heat_curves(plan, plan.profile.requirements[requirement], {&result}, records);
  }
  [[nodiscard]] std::vector<Chart> steps(std::size_t requirement = 0) const {
    return step_curves(plan, plan.profile.requirements[requirement], {&result}, records, watches);
  }

  [[nodiscard]] std::vector<Chart> memory(std::size_t requirement = 0) const {
    return memory_curves(plan, plan.profile.requirements[requirement], {&result}, records);
  }

  plan::Plan plan;
  judge::Result result;
  std::map<std::string, std::vector<Record>> records;
  std::map<int, Record> watches;
};

/// 40 s of warming and 10 s after the mark, read once a second.
Record soak() {
  Record record;
  record.start.host["name"] = std::string("hall-n1");
  std::vector<double> warming;
  for (int i = 0; i < 40; ++i) warming.push_back(40 + i);
  const std::vector<double> warm(10, 80), clock(10, 2.1e9);
  record.measurements = {measured("time_to_steady", "s", {40}),
                         measured("temperature", "degC", warm, kPackage, warming),
                         measured("clock", "Hz", clock, kPackage, std::vector<double>(40, 2.4e9))};
  record.conditions = {told("interval_s", 1.0), told("held_s", 10.0), told("steady", true)};
  return record;
}

TEST(HeatCurves, have_the_steady_mark_where_warm_up_ends) {
  const auto charts = Recorded("thermal_soak", soak()).heat();
  ASSERT_EQ(charts.size(), 2U) << "no power was read";
  EXPECT_TRUE(contains(charts[0].svg, "Temperatures of hall-n1")) << charts[0].svg;
  // The figure is 650 wide from 70 on for 1 s to 50 s; so is the mark of 40 s.
  const double x = 70 + (760 - 110 - 70) * 39.0 / 49;
  EXPECT_TRUE(contains(charts[0].svg, fmt::format("<line class=\"limit\" x1=\"{:.2f}\"", x))) << charts[0].svg;
  EXPECT_TRUE(contains(charts[0].svg, ">steady<"));
  EXPECT_TRUE(contains(charts[0].svg, "package-0"));
  EXPECT_TRUE(contains(charts[0].caption, "Steady after 40 s")) << charts[0].caption;
  EXPECT_TRUE(contains(charts[1].svg, "Clocks of hall-n1"));
  EXPECT_TRUE(contains(charts[1].svg, "in GHz")) << charts[1].svg;
}

TEST(HeatCurves, of_a_soak_without_a_mark_say_what_moved) {
  Record record = soak();
  record.measurements.erase(record.measurements.begin());
  record.conditions = {told("interval_s", 1.0), told("unsteady_because", std::string("clock <of> package-0"))};
  const auto charts = Recorded("thermal_soak", record).heat();
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_FALSE(contains(charts[0].svg, ">steady<"));
  EXPECT_TRUE(contains(charts[0].caption, "It did not become steady: clock &lt;of&gt; package-0."))
      << charts[0].caption;
}

TEST(HeatCurves, are_drawn_once_for_a_measurement_and_of_a_soak_alone) {
  EXPECT_TRUE(Recorded("thermal_soak", soak()).heat(1).empty());
  EXPECT_TRUE(Recorded("train_soak", soak()).heat().empty());
  Record undated = soak();
  undated.conditions.clear();
  EXPECT_TRUE(Recorded("thermal_soak", undated).heat().empty());
}

TEST(HeatCurves, of_a_simulation_say_so) {
  Recorded made("thermal_soak", soak());
  made.plan.simulation.emplace();
  ASSERT_FALSE(made.heat().empty());
  EXPECT_TRUE(made.heat()[0].caption.starts_with("Simulated, not measured.")) << made.heat()[0].caption;
}

/// Three delays, the longest first as the probe measures them; the rate of each is 10 GB/s over 1, 2 and 4.
Record loaded() {
  Record record;
  record.start.host["name"] = std::string("hall-n1");
  record.measurements = {measured("idle_latency", "s", {1e-7, 1e-7, 1.2e-7})};
  const std::vector<std::pair<std::int64_t, double>> delays = {{800, 4}, {200, 2}, {0, 1}};
  for (const auto& [delay, less] : delays) {
    record.measurements.push_back(measured("latency", "s", {1e-7 + 1e-7 / less}));
    record.measurements.back().at = {{"delay_ns", delay}};
    record.measurements.push_back(measured("rate", "B/s", {1e10 / less}));
    record.measurements.back().at = {{"delay_ns", delay}};
  }
  return record;
}

TEST(MemoryCurves, have_a_point_for_each_delay_by_rising_rate_and_the_idle_latency_beside_them) {
  const auto charts = Recorded("host_loaded_latency", loaded()).memory();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(contains(charts[0].svg, "Latency of memory under load on hall-n1")) << charts[0].svg;
  EXPECT_TRUE(contains(charts[0].svg, "3 points, from 125 ns at 2.5 GB/s to 200 ns at 10 GB/s.")) << charts[0].svg;
  EXPECT_TRUE(contains(charts[0].svg, "idle 100 ns")) << charts[0].svg;
  EXPECT_TRUE(contains(charts[0].caption, "The knee is not judged.")) << charts[0].caption;
}

TEST(MemoryCurves, are_drawn_once_of_two_points_or_more_and_of_no_other_probe) {
  EXPECT_TRUE(Recorded("host_loaded_latency", loaded()).memory(1).empty());
  EXPECT_TRUE(Recorded("host_memory_latency", loaded()).memory().empty());
  Record one = loaded();
  one.measurements.resize(3);
  EXPECT_TRUE(Recorded("host_loaded_latency", one).memory().empty());
  Record without_rates = loaded();
  std::erase_if(without_rates.measurements, [](const Measurement& each) { return each.metric == "rate"; });
  EXPECT_TRUE(Recorded("host_loaded_latency", without_rates).memory().empty());
}

TEST(DistanceTables, show_each_matrix_once_with_its_hosts_and_none_of_one_node) {
  Record record;
  record.start.host["name"] = std::string("hall-<n1>");
  for (const auto& [from, to, distance] : {std::tuple{0, 0, 10.0}, {0, 1, 21.0}, {1, 0, 21.0}, {1, 1, 10.0}}) {
    record.measurements.push_back(measured("numa_distance", "1", {distance}));
    record.measurements.back().at = {{"from", std::int64_t{from}}, {"to", std::int64_t{to}}};
  }
  const Recorded two("health_memory", record);
  const auto html = distance_tables(two.plan, two.plan.profile.requirements[0], {&two.result}, two.records);
  EXPECT_TRUE(contains(html, "10 is local: hall-&lt;n1&gt;")) << html;
  EXPECT_TRUE(contains(html, "to 1")) << html;
  EXPECT_TRUE(contains(html, ">21<")) << html;
  EXPECT_EQ(distance_tables(two.plan, two.plan.profile.requirements[1], {&two.result}, two.records), "");
  record.measurements.resize(2);
  const Recorded one("health_memory", record);
  EXPECT_EQ(distance_tables(one.plan, one.plan.profile.requirements[0], {&one.result}, one.records), "");
}

/// Power of `steps` steps of 20 s that rise in 4 s, after 20 s of idling; read once a second from 1000 s on.
std::vector<double> stepping(int steps) {
  std::vector<double> watts(20, 100);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 20; ++i) watts.push_back(std::min(100 + 50.0 * (i + 1), 300.0));
    watts.resize(watts.size() + 20, 100);
  }
  return watts;
}

Record power_stepped() {
  Record record;
  record.measurements = {measured("power", "W", stepping(2), kPackage), measured("step_up", "s", {1020, 1060}),
                         measured("step_down", "s", {1040, 1080}), measured("rise_time", "s", {3.2, 3.2}, kPackage),
                         measured("settling_time", "s", {4, 5}, kPackage)};
  record.conditions = {told("shape", std::string("step")), told("interval_s", 1.0), told("curve_begin_s", 1000.0)};
  return record;
}

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(StepCurves, have_a_line_for_each_step_on_the_time_since_its_mark) {
  const auto charts = Recorded("power_step", power_stepped()).steps();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(times_in(charts[0].svg, "class=\"curve\""), 2U) << charts[0].svg;
  for (const char* words :
       {">load rises<", ">settled<", ">step 1<", ">step 2<", ">0<", ">20<", "s since the load began to rise"})
    EXPECT_TRUE(contains(charts[0].svg, words)) << words << charts[0].svg;
  EXPECT_TRUE(contains(charts[0].caption, "rise from 10 to 90 % 3.2 s, settled within 5 % after 4.5 s."))
      << charts[0].caption;
  // Both steps are alike, so both lines are.
  const auto first = charts[0].svg.find("class=\"curve\""), second = charts[0].svg.find("class=\"curve\"", first + 1);
  const auto path = [&](std::size_t at) { return charts[0].svg.substr(at, charts[0].svg.find("/>", at) - at); };
  EXPECT_EQ(path(first), path(second));
}

TEST(StepCurves, of_a_step_that_is_not_seen_say_why) {
  Record record = power_stepped();
  record.measurements.resize(3);
  record.conditions.push_back(told("step_unseen", std::string("step 1 of 2: too fast"), kPackage));
  const auto charts = Recorded("power_step", record).steps();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(contains(charts[0].caption, "No figure follows: step 1 of 2: too fast."));
  EXPECT_FALSE(contains(charts[0].svg, ">settled<"));
}

TEST(StepCurves, of_a_square_are_one_line_over_the_whole_time) {
  Record record = power_stepped();
  record.conditions[0].value = std::string("square");
  const auto charts = Recorded("power_step", record).steps();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(times_in(charts[0].svg, "class=\"curve\""), 1U);
  EXPECT_FALSE(contains(charts[0].svg, ">load rises<"));
}

/// A load with the same steps, which a rack's meters see; begins and readings are on one clock.
Recorded metered(double averaging_s) {
  Record load;
  load.measurements = {measured("step_up", "s", {1020, 1060}), measured("step_down", "s", {1040, 1080})};
  load.conditions = {told("hold_end_s", 1100.0), told("groups_before", std::int64_t{0})};
  Recorded one("power_feed", load);
  for (auto& requirement : one.plan.profile.requirements) requirement.during = "load_bank";
  one.result.subject = {.kind = "rack", .id = "r1"};
  Record watch;
  // Five times as slow: a rise of 20 s is for a meter that is read once a second.
  auto power = measured("total_power", "W", stepping(2), {.kind = "rack", .id = "r1"});
  power.at = {{"begin_s", 1000.0}, {"interval_s", 1.0}, {"meter", std::string("pdu")}};
  auto other = power;
  other.subject.id = "r2";
  watch.measurements = {power, other};
  const Subject pdu{.kind = "meter", .id = "pdu"};
  watch.conditions = {told("meter_doubts", std::string("none"), pdu), told("averaging_s", averaging_s, pdu),
                      told("accuracy_declared", 0.01, pdu)};
  one.watches.emplace(0, std::move(watch));
  return one;
}

TEST(StepCurves, of_a_load_are_of_the_racks_that_were_judged_and_drawn_once) {
  const Recorded one = metered(0.5);
  const auto charts = one.steps();
  ASSERT_EQ(charts.size(), 1U) << "r2 was not judged";
  EXPECT_TRUE(contains(charts[0].svg, "Power of rack r1")) << charts[0].svg;
  EXPECT_EQ(times_in(charts[0].svg, "class=\"curve\""), 2U);
  EXPECT_TRUE(contains(charts[0].caption, "By the site's meters, every 1 s")) << charts[0].caption;
  EXPECT_TRUE(one.steps(1).empty());
}

TEST(StepCurves, of_a_meter_that_is_too_slow_are_drawn_with_the_reason) {
  const auto charts = metered(5).steps();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(contains(charts[0].caption, "Step 1 of 2 is not seen")) << charts[0].caption;
  EXPECT_FALSE(contains(charts[0].svg, ">settled<"));
}

TEST(StepCurves, of_a_simulated_load_are_none) {
  Recorded one = metered(0.5);
  one.plan.simulation.emplace();
  EXPECT_TRUE(one.steps().empty());
}

TEST(Curve, labels_below_its_points_do_not_touch) {
  Curve curve;
  for (const auto& [x, label] : {std::pair(12.07, "12.07 GB/s"),
                                 {132.8, "132.8 GB/s"},
                                 {199.2, "199.2 GB/s"},
                                 {265.5, "265.5 GB/s"},
                                 {398.3, "398.3 GB/s"}})
    curve.points.push_back({.x = x, .label = label, .value = 1e-7, .interval = {}, .limit = {}, .acceptance = {}});
  const std::string svg = curve_svg(curve);
  EXPECT_TRUE(contains(svg, ">132.8 GB/s<")) << svg;
  EXPECT_FALSE(contains(svg, ">199.2 GB/s<")) << "50 units further, and 62 wide";
  EXPECT_FALSE(contains(svg, ">265.5 GB/s<")) << "as near to the last";
  EXPECT_TRUE(contains(svg, ">398.3 GB/s<"));
}

/// Attempts of the step n01 at 0, 10 and 20 s of which each has a share, or none where it is negative.
Chart offload_of(const std::vector<double>& shares, std::size_t attempts = 3, std::size_t requirement = 0,
                 bool demand_first = false) {
  Recorded made("virtual_network", {});
  if (demand_first) made.plan.profile.requirements.front().demand = {.name = "offloaded_share", .at_least = 0.9};
  made.plan.steps.push_back({.id = "n01", .probe = "virtual_network", .nodes = {"left", "right"}});
  made.records.at("n01").resize(shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (shares[i] >= 0) made.records.at("n01")[i].conditions = {told("offloaded_share", shares[i])};
  judge::Journal journal;
  for (std::size_t i = 0; i < attempts; ++i) {
    judge::Attempt attempt;
    attempt.step = "n01";
    attempt.outcome = AttemptOutcome::exited;
    attempt.begin = fmt::format("2026-11-28T10:00:{}0.000Z", i);
    journal.attempts.push_back(attempt);
  }
  return offload_chart(made.plan, journal, made.plan.profile.requirements[requirement], {&made.result}, made.records);
}

TEST(OffloadChart, has_a_line_for_each_pair_over_the_time_of_the_attempts) {
  const Chart chart = offload_of({0.95, 0.9, 0.2});
  EXPECT_NE(chart.svg.find("text-anchor=\"start\">Share of the traffic"), std::string::npos) << chart.svg;
  for (const char* words : {">left+right<", "s since the first attempt", "adapters forwarded"})
    EXPECT_TRUE(contains(chart.svg, words)) << words << chart.svg;
  EXPECT_EQ(chart.svg.find("class=\"curve\""), chart.svg.rfind("class=\"curve\"")) << "one line";
  EXPECT_TRUE(contains(chart.svg, "class=\"dot\"")) << "an attempt far from the others is seen too";
  EXPECT_TRUE(contains(chart.caption, "0 is a switch in software"));
  EXPECT_FALSE(offload_of({0.95, 0.9, 0.2}, 3, 1, true).svg.empty()) << "a demand has no charts";
}

TEST(OffloadChart, is_absent_where_nothing_counted_or_attempts_are_not_known) {
  EXPECT_TRUE(offload_of({-1, -1, -1}).svg.empty());
  EXPECT_TRUE(offload_of({0.9}, 1).svg.empty()) << "one point is no course";
  EXPECT_TRUE(offload_of({0.9, 0.9}).svg.empty()) << "an attempt has no record";
  EXPECT_TRUE(offload_of({0.9, 0.9, 0.9}, 3, 1).svg.empty()) << "drawn once";
}

}  // namespace
}  // namespace assay::figures
