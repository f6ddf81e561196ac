// Curves over sizes: the worst value at each, and no number without a measurement.
#include "reports/figures/network_curves.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/figures/chart_fixture.h"

namespace assay::figures {
namespace {

using fixture::contains;
using fixture::demanded;
using fixture::judged;
using fixture::name;
using fixture::site_of;

/// Requirements on three sizes of messages, each measured on two pairs.
struct SizeRun {
  plan::Plan plan;
  judge::Results results;
  std::map<std::string, double> wire_limits;

  SizeRun() {
    plan.site = site_of(4, 0);
    plan.probes["probe"].description.scope = "pair";
    for (const char* pair : {"n000+n001", "n002+n003"}) {
      plan::Step step;
      step.id = pair;
      step.nodes = {std::string(pair).substr(0, 4), std::string(pair).substr(5)};
      plan.steps.push_back(step);
      wire_limits[pair] = pair[3] == '0' ? 400 : 300;
    }
    for (const std::int64_t size : {8, 4096, 1 << 20}) {
      plan::Requirement requirement = demanded(fmt::format("size-{}", size), "bandwidth");
      requirement.at = {{"size", size}};
      plan.profile.requirements.push_back(requirement);
      results.push_back(judged("n000+n001", judge::Outcome::pass, 150, "n000+n001"));
      results.push_back(judged("n002+n003", size == 4096 ? judge::Outcome::fail : judge::Outcome::pass,
                               size == 4096 ? 60 : 140, "n002+n003"));
      for (auto* one : {&results.back(), &results[results.size() - 2]}) one->requirement = requirement.id;
    }
  }

  [[nodiscard]] ResultsOf by_requirement() const {
    ResultsOf all;
    for (const auto& one : results) all[one.requirement].push_back(&one);
    return all;
  }
  [[nodiscard]] std::vector<NetworkCurve> curves() const {
    const StepIndex steps = index_of_steps(plan);
    const ResultsOf all = by_requirement();
    return size_curves({.plan = plan, .steps = steps, .results = all, .wire_limits = wire_limits});
  }
};

TEST(SizeCurve, has_the_worst_at_each_size_within_the_band_of_all) {
  const auto curves = SizeRun().curves();
  ASSERT_EQ(curves.size(), 1U);
  const auto& points = curves[0].curve.points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[1].label, "4 KiB");
  EXPECT_EQ(points[1].value, 60);
  EXPECT_EQ(points[1].high, 150);
  EXPECT_FALSE(points[1].passes);
  EXPECT_TRUE(points[2].passes);
  EXPECT_TRUE(contains(curves[0].caption, "Worst: n002 · pair n002+n003 at 4 KiB (fail, 60.00 B/s)"))
      << curves[0].caption;
}

TEST(SizeCurve, has_the_slowest_wire_only_when_every_measured_step_tells_one) {
  SizeRun run;
  EXPECT_EQ(run.curves().at(0).curve.lines.at(0).value, 300);
  run.wire_limits.erase("n000+n001");
  EXPECT_TRUE(run.curves().at(0).curve.lines.empty());
}

TEST(SizeCurve, a_size_whose_worst_was_not_measured_has_no_value) {
  SizeRun run;
  run.results[5] = judged("n002+n003", judge::Outcome::not_measured, {}, "n002+n003");
  run.results[5].requirement = run.results[4].requirement;
  const auto curves = run.curves();
  EXPECT_FALSE(curves.at(0).curve.points[2].value);
  EXPECT_TRUE(contains(curve_svg(curves[0].curve), ">?</text>"));
  EXPECT_TRUE(contains(curves[0].caption, "4 pass, 1 fail, 1 not measured"));
}

TEST(SizeCurve, other_parameters_or_one_size_alone_make_no_curve) {
  SizeRun run;
  for (std::size_t i = 0; i < 3; ++i)
    run.plan.profile.requirements[i].parameters = {{"operation", fmt::format("kind-{}", i)}};
  EXPECT_TRUE(run.curves().empty());
}

TEST(SizeCurve, values_far_apart_are_drawn_logarithmically_and_stay_finite) {
  SizeRun run;
  run.results[0].value = run.results[1].value = 0.5;
  const std::string svg = curve_svg(run.curves().at(0).curve);
  EXPECT_TRUE(contains(svg, "bandwidth (logarithmic)"));
  EXPECT_FALSE(contains(svg, "nan"));
  EXPECT_FALSE(contains(svg, "inf"));
}

TEST(ScalingCurve, takes_the_smallest_groups_as_reference_and_leaves_single_nodes_out) {
  plan::Plan plan;
  plan.site = site_of(8, 0);
  judge::Results results;
  ResultsOf by_requirement;
  for (const std::size_t nodes : {1, 2, 4, 8}) {
    plan::Step step;
    step.id = fmt::format("first-{}", nodes);
    for (std::size_t i = 0; i < nodes; ++i) step.nodes.push_back(name(i));
    plan.steps.push_back(step);
    plan.profile.requirements.push_back(demanded(step.id, "busbw"));
    results.push_back(judged(step.id, judge::Outcome::pass, 200 - 5.0 * static_cast<double>(nodes), step.id));
  }
  for (const auto& one : results) by_requirement[one.step].push_back(&one);
  const StepIndex steps = index_of_steps(plan);
  const auto curves = scaling_curves({.plan = plan, .steps = steps, .results = by_requirement, .wire_limits = {}});
  ASSERT_EQ(curves.size(), 1U);
  ASSERT_EQ(curves[0].curve.points.size(), 3U);
  EXPECT_EQ(curves[0].curve.points[0].label, "2");
  ASSERT_EQ(curves[0].curve.lines.size(), 1U);
  EXPECT_EQ(curves[0].curve.lines[0].value, 190);
  EXPECT_TRUE(contains(curve_svg(curves[0].curve), "nodes in the group"));
}

TEST(ScalingCurve, shows_the_promised_ceiling_that_caps_the_limit) {
  plan::Plan plan;
  plan.site = site_of(8, 0);
  plan.profile.peaks["all"] = {.value = 380, .unit = "B/s", .source = {}};
  judge::Results results;
  ResultsOf by_requirement;
  for (const std::size_t nodes : {2, 4, 8}) {
    plan::Step step;
    step.id = fmt::format("first-{}", nodes);
    for (std::size_t i = 0; i < nodes; ++i) step.nodes.push_back(name(i));
    plan.steps.push_back(step);
    plan.profile.requirements.push_back(demanded(step.id, "bandwidth"));
    plan.profile.requirements.back().limit.reference = plan::Reference::smallest_group_by_nodes;
    plan.profile.requirements.back().limit.capped_by = "all";
    results.push_back(judged(step.id, judge::Outcome::pass, 380, step.id));
    results.back().requirement = step.id;
  }
  for (const auto& one : results) by_requirement[one.step].push_back(&one);
  const StepIndex steps = index_of_steps(plan);
  const auto curves = scaling_curves({.plan = plan, .steps = steps, .results = by_requirement, .wire_limits = {}});
  ASSERT_EQ(curves.size(), 1U);
  ASSERT_EQ(curves[0].curve.lines.size(), 2U);
  EXPECT_EQ(curves[0].curve.lines[1].value, 380);
  EXPECT_EQ(curves[0].curve.lines[1].words, "promised 380 B/s");
  EXPECT_TRUE(contains(curves[0].caption, "Dotted, promised: the ceiling"));
  EXPECT_TRUE(contains(curve_svg(curves[0].curve), "promised 380 B/s"));
}

TEST(KneeCurve, sizes_around_the_knee_have_labels_where_there_is_room) {
  plan::Plan plan;
  plan.profile.requirements.push_back({.id = "s", .metric = "write_bandwidth", .limit = {.unit = "B/s"}});
  judge::Verdict verdict;
  verdict.knees.push_back({.requirement = "s", .state = judge::KneeState::found, .kept = 12, .lost = 13});
  verdict.knees.front().counter = {.name = "server_slots", .before = 1, .at = 9, .spread = 0.1};
  for (const std::size_t nodes : {2, 4, 8, 12, 13, 16, 32, 64})
    verdict.knees.front().points.push_back({.nodes = nodes, .value = 1e9, .kept = nodes <= 12, .counter = 1.0});
  const auto curves = knee_curves(plan, verdict);
  ASSERT_EQ(curves.size(), 2U);
  for (const auto& [curve, caption] : curves) {
    const std::string svg = curve_svg(curve);
    for (const char* label : {">2<", ">4<", ">8<", ">knee 12<", ">16<", ">32<", ">64<"})
      EXPECT_TRUE(contains(svg, label)) << curve.title << " " << label;
    EXPECT_FALSE(contains(svg, ">13<")) << "would touch the knee's";
  }
}

TEST(Words, sizes_are_exact) {
  EXPECT_EQ(size_words(8), "8 B");
  EXPECT_EQ(size_words(65536), "64 KiB");
  EXPECT_EQ(size_words(1e6), "1000000 B");
  EXPECT_EQ(size_words(17179869184.0), "16 GiB");
}

}  // namespace
}  // namespace assay::figures
