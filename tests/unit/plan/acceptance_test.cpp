// How likely a plan accepts a fleet without fault, against the same fleet made up many times.
#include "orchestrator/plan/acceptance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/plan/pass_guards.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "tests/unit/fixture.h"

namespace assay::plan::acceptance_test {
namespace {

constexpr double kRisk = 0.05;
constexpr std::size_t kManySteps = 1000;  // over which the deviation between attempts is known

/// The margin beyond a lower limit of a figure that is beyond it by this share of itself, as its guard band is.
double beyond(double share) { return share / (1 - share); }

/// The share of made-up cells that pass: attempts of one node, their mean against the limit and the guard band, then
/// the mean of all with those of the second stage.
double share_that_passes(const HealthyFleet& fleet, int attempts, int more_attempts, double instrument) {
  constexpr int kCells = 100'000;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const int stages = more_attempts > 0 ? 2 : 1;
  const auto guard = [&](int count) {
    const double u = portable_hypot(fleet.between_runs / (1 + fleet.margin) / std::sqrt(count), instrument);
    return beyond(student_quantile(1 - kRisk / stages, static_cast<double>(kManySteps) * (count - 1)) * u);
  };
  const double first = guard(attempts);
  const double second = guard(attempts + more_attempts);
  int passed = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    const double node = fleet.margin + fleet.between_nodes * normal(random) + instrument * normal(random);
    double sum = 0;
    for (int i = 0; i < attempts; ++i) sum += node + fleet.between_runs * normal(random);
    bool pass = sum / attempts >= first;
    for (int i = 0; i < more_attempts; ++i) sum += node + fleet.between_runs * normal(random);
    pass = pass || (stages == 2 && sum / (attempts + more_attempts) >= second);
    if (pass) ++passed;
  }
  return static_cast<double>(passed) / kCells;
}

/// Made-up fleets of steps with several cells, judged with Student's t by their own deviations or by the pooled ones.
class MadeUp {
 public:
  MadeUp(const HealthyFleet& fleet, const Repeats& repeats)
      : fleet_(fleet), repeats_(repeats), all_(repeats.attempts + repeats.more_attempts) {}

  double accepted(int fleets) {
    int count = 0;
    for (int i = 0; i < fleets; ++i) count += is_accepted() ? 1 : 0;
    return static_cast<double>(count) / fleets;
  }

 private:
  bool is_accepted() {
    const auto cells = static_cast<std::size_t>(repeats_.cells_per_step);
    std::vector<std::vector<std::vector<double>>> steps(repeats_.steps);
    for (auto& step : steps) {
      step.resize(cells);
      for (auto& cell : step) {
        const double node = 1 + fleet_.margin + fleet_.between_nodes * normal_(random_);
        for (int i = 0; i < all_; ++i) cell.push_back(node + fleet_.between_runs * normal_(random_));
      }
    }
    std::vector<int> counts(steps.size(), repeats_.attempts);
    const std::vector<bool> first = passes(steps, counts);
    for (std::size_t i = 0; i < steps.size(); ++i) counts[i] = first[i] ? repeats_.attempts : all_;
    return std::ranges::all_of(passes(steps, counts), [](bool one) { return one; });
  }

  std::vector<bool> passes(const std::vector<std::vector<std::vector<double>>>& steps, const std::vector<int>& counts) {
    judge::BetweenRuns between;
    std::vector<std::vector<judge::AttemptsEstimate>> all(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const auto& cell : steps[i]) {
        judge::AttemptsEstimate& one = all[i].emplace_back();
        one.each.assign(cell.begin(), cell.begin() + counts[i]);
        const Moments of = moments(one.each);
        one.value = of.mean, one.between = of.standard_deviation();
        between.add(std::to_string(i), one);
      }
    }
    std::vector<bool> pass;
    for (const auto& step : all) {
      pass.push_back(std::ranges::all_of(step, [&](const judge::AttemptsEstimate& one) {
        const judge::Scatter scatter = between.of(one, {});
        const auto [t, fresh] = quantiles_.try_emplace(scatter.degrees, 0);
        if (fresh) t->second = student_quantile(1 - kRisk / 2, scatter.degrees);
        return one.value >= 1 + t->second * scatter.deviation / std::sqrt(static_cast<double>(one.each.size()));
      }));
    }
    return pass;
  }

  HealthyFleet fleet_;
  Repeats repeats_;
  int all_;
  std::mt19937_64 random_{7};
  std::normal_distribution<double> normal_;
  std::map<double, double> quantiles_;
};

double chance_to_pass(const HealthyFleet& fleet, int attempts, int more_attempts, const StatedUncertainty& stated,
                      std::size_t steps) {
  return ChanceToPass(fleet, {.attempts = attempts, .more_attempts = more_attempts, .steps = steps}, kRisk,
                      stated)(fleet.margin);
}

/// The chance of the cells of a requirement that 20 steps measure.
ChanceToPass of_twenty(const HealthyFleet& fleet) {
  return {fleet, {.attempts = 3, .more_attempts = 4, .steps = 20}, normal_cdf(-1.645), {}};
}

Plan plan_to_accept(const std::vector<std::string>& requirements, int nodes) {
  return *make_plan(fixture::profile(requirements), fixture::site(nodes), fixture::programs(), {});
}

constexpr const char* kRate =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4}})";
constexpr const char* kCount =
    R"({"metric": "mismatches", "statistic": "max", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})";

}  // namespace

TEST(acceptance, the_integral_is_what_made_up_fleets_show) {
  constexpr double kError = 0.006;  // four standard errors of 100,000 cells
  for (const auto& fleet : {HealthyFleet{.margin = 0.01, .between_nodes = 0.005, .between_runs = 0.01},
                            HealthyFleet{.margin = 0, .between_nodes = 0, .between_runs = 0.01},
                            HealthyFleet{.margin = 0.02, .between_nodes = 0.01, .between_runs = 0.02}}) {
    for (const double instrument : {0.0, 0.01}) {
      const StatedUncertainty stated{.instrument = instrument};
      EXPECT_NEAR(chance_to_pass(fleet, 3, 4, stated, kManySteps), share_that_passes(fleet, 3, 4, instrument), kError);
      EXPECT_NEAR(chance_to_pass(fleet, 3, 0, stated, kManySteps), share_that_passes(fleet, 3, 0, instrument), kError);
    }
  }
}

TEST(acceptance, fleets_with_many_cells_are_accepted_as_made_up_ones) {
  constexpr int kFleets = 2500;
  struct Case {
    HealthyFleet fleet;
    Repeats repeats;
    double error;  // three standard errors
  };
  for (const auto& [fleet, repeats, error] :
       {Case{{.margin = 0.045, .between_nodes = 0.005, .between_runs = 0.02}, {.steps = 7, .cells_per_step = 32}, 0.03},
        Case{{.margin = 0.025, .between_nodes = 0.005, .between_runs = 0.01},
             {.more_attempts = 10, .steps = 40, .cells_per_step = 8},
             0.03},
        // One in four of these fleets has a cell with a deviation of its own.
        Case{{.margin = 0.06, .between_nodes = 0.005, .between_runs = 0.02}, {.steps = 300}, 0.005}})
    EXPECT_NEAR(std::exp(ChanceToPass(fleet, repeats, kRisk, {}).log_all(fleet.margin)),
                MadeUp(fleet, repeats).accepted(kFleets), error);
}

TEST(acceptance, at_the_limit_a_cell_passes_with_the_risk_at_most) {
  const HealthyFleet at_limit{.margin = 0, .between_nodes = 0, .between_runs = 0.01};
  EXPECT_NEAR(chance_to_pass(at_limit, 3, 0, {}, kManySteps),
              normal_cdf(-beyond(1.6449 * 0.01 / std::sqrt(3)) / (0.01 / std::sqrt(3))), 0.001);
  EXPECT_LE(chance_to_pass(at_limit, 3, 4, {}, kManySteps), kRisk);
}

TEST(acceptance, few_attempts_of_one_node_are_a_wide_band) {
  const HealthyFleet fleet{.margin = 0.04, .between_nodes = 0.005, .between_runs = 0.02};
  EXPECT_LT(chance_to_pass(fleet, 3, 0, {}, 1), chance_to_pass(fleet, 3, 0, {}, 100));
  EXPECT_LT(chance_to_pass(fleet, 3, 0, {}, 1), chance_to_pass(fleet, 3, 4, {}, 1));
  EXPECT_LT(chance_to_pass(fleet, 3, 4, {.instrument = 0.02}, 100), chance_to_pass(fleet, 3, 4, {}, 100));
  EXPECT_LT(chance_to_pass(fleet, 3, 4, {.between_runs = 0.1}, 1), chance_to_pass(fleet, 3, 4, {}, 1));
}

TEST(acceptance, no_probability_is_over_one_and_none_falls_with_the_margin) {
  std::vector<Repeats> all = {{.steps = 10'000, .cells_per_step = 8}};
  for (const std::size_t steps : {1UL, 7UL, 8UL, 300UL}) {
    for (const auto& [attempts, more] : {std::pair{3, 0}, {3, 4}, {3, 10}, {5, 5}}) {
      all.push_back({.attempts = attempts, .more_attempts = more, .steps = steps});
      all.push_back({.attempts = attempts, .more_attempts = more, .steps = steps, .cells_per_step = 8});
    }
  }
  for (const Repeats& repeats : all) {
    const ChanceToPass chance({.between_nodes = 0.005, .between_runs = 0.02}, repeats, kRisk, {});
    double before = 0;
    for (const double margin : {0.0, 0.02, 0.04, 0.06, 0.1, 0.5}) {
      const double log = chance.log_all(margin);
      const bool is_probability = log <= 1e-9 && std::exp(log) >= before - 1e-4;
      EXPECT_TRUE(is_probability) << repeats.steps << ", " << repeats.more_attempts << ", " << margin << ": " << log;
      before = std::exp(log);
    }
    EXPECT_GT(before, 1 - 1e-4) << repeats.steps << ", " << repeats.more_attempts;
  }
}

TEST(acceptance, the_share_above_a_value_of_chi_squared_is_that_of_its_quantile) {
  for (const double degrees : {1.0, 2.0, 9.0, 150.0, 600.0}) {
    for (const double p : {0.001, 0.3, 0.5, 0.95, 0.9999})
      EXPECT_NEAR(chi_squared_tail(chi_squared(p, degrees), degrees), 1 - p, 1e-6) << degrees << ", " << p;
  }
  EXPECT_NEAR(chi_squared_tail(3.841458820694124, 1), 0.05, 1e-9);  // Abramowitz & Stegun, table 26.8
  EXPECT_EQ(chi_squared_tail(0, 3), 1);
  EXPECT_EQ(chi_squared_tail(1, 0), 0);
}

TEST(acceptance, one_attempt_passes_by_what_is_stated) {
  const HealthyFleet fleet{.margin = 0.04, .between_nodes = 0, .between_runs = 0.01};
  const auto chance = [&](const StatedUncertainty& stated) { return chance_to_pass(fleet, 1, 0, stated, 1); };
  EXPECT_NEAR(chance({.reproducibility = 0.01}), normal_cdf(4 - 100 * beyond(0.016449)), 1e-4);
  EXPECT_NEAR(chance({.between_runs = 0.02, .reproducibility = 0.01}), normal_cdf(4 - 100 * beyond(2 * 0.016449)),
              1e-4);
  EXPECT_NEAR(chance({.between_runs = 0.005}), normal_cdf(4 - 100 * beyond(0.063138 / 2)), 1e-4);  // t(0.95, 1)
}

TEST(acceptance, a_plan_counts_its_required_medians_and_what_nothing_measures) {
  const HealthyFleet fleet;
  const AcceptanceChance chance = acceptance_chance(plan_to_accept({kRate, kCount}, 20), fleet);
  EXPECT_EQ(chance.cells, 20U);
  EXPECT_NEAR(chance.accepted, std::exp(of_twenty(fleet).log_all(fleet.margin)), 1e-9);
  const AcceptanceChance without = acceptance_chance(
      plan_to_accept({kRate, R"({"probe": "absent", "limit": {"at_least": 1, "unit": "B/s"}})"}, 2), fleet);
  EXPECT_EQ(without.unplanned, 2U);
  EXPECT_EQ(without.accepted, 0);
}

TEST(acceptance, advice_and_what_the_site_does_not_have_cost_nothing_and_every_part_counts) {
  constexpr const char* kAdvice =
      R"({"severity": "advisory", "limit": {"at_least": 200, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4}})";
  const AcceptanceChance alone = acceptance_chance(plan_to_accept({kRate}, 20), {});
  const AcceptanceChance advised = acceptance_chance(plan_to_accept({kRate, kAdvice}, 20), {});
  EXPECT_EQ(advised.cells, 20U);
  EXPECT_EQ(advised.accepted, alone.accepted);
  Plan plan = plan_to_accept({kRate, kCount}, 20);
  Requirement& paths = plan.profile.requirements.at(1);
  paths.by = Grouping::path;  // the site has none
  for (Cell& cell : plan.coverage)
    if (cell.requirement == paths.id) cell.step.clear();
  EXPECT_EQ(acceptance_chance(plan, {}).unplanned, 20U);
  paths.when_told = true;
  EXPECT_EQ(acceptance_chance(plan, {}).unplanned, 0U);
  constexpr const char* kDrives =
      R"({"scope": "drive", "limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4}})";
  const auto drives = make_plan(fixture::profile({kDrives}, {{"drive", 4}}), fixture::site(5), fixture::programs(), {});
  EXPECT_EQ(acceptance_chance(*drives, {}).cells, 20U);
}

TEST(acceptance, a_contrast_has_the_scatter_of_two_figures) {
  const HealthyFleet fleet{.margin = 0.02, .between_nodes = 0.005, .between_runs = 0.01};
  const Plan plan = plan_to_accept({R"({"contrast": {"parameter": "size", "on": 8, "off": 4, "at_least": 0.05,
      "shown_by": "direct_io"}, "repeat": {"attempts": 3, "more_attempts": 4}})"},
                                   20);
  HealthyFleet of_two = fleet;
  of_two.between_runs *= std::sqrt(2.0);
  const ChanceToPass each(of_two, {.attempts = 3, .more_attempts = 4, .steps = 20, .bound = Bound::ratio},
                          normal_cdf(-plan.profile.guard_factor), {});
  EXPECT_NEAR(acceptance_chance(plan, fleet).accepted, std::exp(each.log_all(fleet.margin)), 1e-6);
}

TEST(acceptance, a_larger_fleet_is_accepted_less_often) {
  const HealthyFleet fleet{.margin = 0.02, .between_nodes = 0.005, .between_runs = 0.01};
  EXPECT_LT(acceptance_chance(plan_to_accept({kRate}, 64), fleet).accepted,
            acceptance_chance(plan_to_accept({kRate}, 8), fleet).accepted);
}

TEST(acceptance, a_cell_with_a_deviation_of_its_own_passes_at_its_limit_with_the_risk_at_most) {
  for (const int more : {0, 4}) {
    const HealthyFleet at_limit{.margin = 0, .between_nodes = 0, .between_runs = 0.01};
    const double chance = chance_to_pass(at_limit, 3, more, {}, 1);
    if (more == 0) {
      EXPECT_NEAR(chance, kRisk, 0.005);  // three standard errors of 20,000 cells
    }
    EXPECT_LE(chance, kRisk + 0.005);
  }
}

namespace {

AgreedRisk agreed(const std::string& text) {
  const auto risk = read_agreed_risk(text, "--risk");
  EXPECT_TRUE(risk) << risk.error().text();
  return risk.value_or(AgreedRisk{});
}

}  // namespace

TEST(agreed_risk, bad_nodes_cost_acceptance_and_a_margin_earns_it) {
  const Plan plan = plan_to_accept({kRate, kCount}, 20);
  const RiskReached risk = reached_risk(plan, agreed("beyond=4,vendor=5,short=2,buyer=5,bad=10,runs=1"));
  EXPECT_EQ(risk.cells, 20U);
  EXPECT_EQ(risk.bad_nodes, 2U);
  EXPECT_EQ(risk.by_bad_nodes.front().accepted, to_12_digits(1 - risk.vendor_risk));
  constexpr double kOfIntegration = 1e-4;  // a hundredth of the point to which the curve is right
  for (const auto* curve : {&risk.by_margin, &risk.by_bad_nodes}) {
    const bool rises = curve == &risk.by_margin;
    for (std::size_t i = 1; i < curve->size(); ++i) {
      const double change = (*curve)[i].accepted - (*curve)[i - 1].accepted;
      EXPECT_GE(rises ? change : -change, -kOfIntegration) << i;
    }
  }
  // A node that is short passes as a cell of one node whose mean is 2 % below the limit, and one such cell is enough.
  const HealthyFleet good{.margin = 0.04, .between_runs = 0.01};
  EXPECT_NEAR(risk.buyer_risk, std::exp(of_twenty(good).log_all(0.04, 0.02, 2)), 1e-9);
  EXPECT_GT(risk.nodes_to_draw, 1U);
  EXPECT_LE(risk.nodes_to_draw, 20U);
}

TEST(agreed_risk, a_plan_keeps_what_was_agreed_or_is_not_made) {
  const auto made = [](const char* text) {
    return make_plan(fixture::profile({kRate}), fixture::site(10), fixture::programs(), {.agreed_risk = agreed(text)});
  };
  const auto kept = made("beyond=4,vendor=5,short=2,buyer=5");
  ASSERT_TRUE(kept) << kept.error().text();
  const std::string text = plan_text(*kept);
  const auto again = read_plan(text, "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->agreed_risk, kept->agreed_risk);
  EXPECT_NE(risk_text(*again).find("10 of 10 nodes 2 % short in one rate: accepted with"), std::string::npos)
      << risk_text(*again);
  const auto wide = made("beyond=1,vendor=5,short=1,buyer=5,runs=2");
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().text().find("does not keep it: the vendor's fleet is refused with"), std::string::npos)
      << wide.error().text();
  const auto more = made("beyond=3,vendor=5,short=1,buyer=5,runs=1.5");
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().text().find("attempts and"), std::string::npos) << more.error().text();
  const auto without = make_plan(fixture::profile({kCount}), fixture::site(10), fixture::programs(),
                                 {.agreed_risk = agreed("beyond=4,vendor=5,short=2,buyer=5")});
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().text().find("no required rate"), std::string::npos);
}

TEST(agreed_risk, odd_agreements_are_refused_with_their_place) {
  for (const auto& [text, place] : {std::pair{"", "beyond"},
                                    {"beyond=4", "vendor"},
                                    {"beyond=4,vendor=5,short=2", "buyer"},
                                    {"beyond=4,vendor=5,short=2,buyer=5,buyer=6", "twice"},
                                    {"beyond=4,vendor=5,short=2,buyer=x", "buyer=x"},
                                    {"beyond=4,vendor=5,short=2,buyer", "'buyer' is not a number"},
                                    {"beyond=4,vendor=5,short=2,buyer=5,margin=1", "margin"},
                                    {"beyond=-4,vendor=5,short=2,buyer=5", "beyond"},
                                    {"beyond=nan,vendor=5,short=2,buyer=5", "beyond"},
                                    {"beyond=4,vendor=0,short=2,buyer=5", "vendor"},
                                    {"beyond=4,vendor=5,short=2,buyer=60", "buyer"},
                                    {"beyond=4,vendor=5,short=2,buyer=5,bad=0", "bad"}}) {
    const auto refused = read_agreed_risk(text, "--risk");
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().text().find(place), std::string::npos) << text << ": " << refused.error().text();
  }
}

TEST(acceptance, what_is_taken_of_a_healthy_fleet_is_read_in_per_cent) {
  const auto fleet = healthy_fleet("4,0.5,1", "--healthy");
  ASSERT_TRUE(fleet) << fleet.error().text();
  EXPECT_EQ(fleet->margin, 0.04);
  EXPECT_EQ(fleet->between_nodes, 0.005);
  EXPECT_EQ(fleet->between_runs, 0.01);
  for (const char* odd : {"", "4", "4,0.5", "4,0.5,1,2", "4,0.5,-1", "a,b,c", "4;1;1", "nan,1,1"}) {
    const auto refused = healthy_fleet(odd, "--healthy");
    ASSERT_FALSE(refused) << odd;
    EXPECT_NE(refused.error().text().find("--healthy"), std::string::npos);
  }
}

}  // namespace assay::plan::acceptance_test
