// How likely a plan accepts a fleet without fault, against the same fleet made up many times.
#include "orchestrator/plan/acceptance.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "probes/core/small_samples.h"
#include "tests/unit/fixture.h"

namespace assay::plan::acceptance_test {
namespace {

constexpr double kRisk = 0.05;
constexpr double kManySubjects = 1000;  // of which the deviation between attempts is known

/// The share of made-up cells that pass: attempts of one node, their mean against the limit and the guard band, then
/// the mean of all with those of the second stage.
double share_that_passes(const HealthyFleet& fleet, int attempts, int more_attempts) {
  constexpr int kCells = 20000;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const int stages = more_attempts > 0 ? 2 : 1;
  const auto guard = [&](int count) {
    return student_quantile(1 - kRisk / stages, kManySubjects * (count - 1)) * fleet.between_runs / std::sqrt(count);
  };
  const double first = guard(attempts);
  const double second = guard(attempts + more_attempts);
  int passed = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    const double node = fleet.margin + fleet.between_nodes * normal(random);
    double sum = 0;
    for (int i = 0; i < attempts; ++i) sum += node + fleet.between_runs * normal(random);
    bool pass = sum / attempts >= first;
    for (int i = 0; i < more_attempts; ++i) sum += node + fleet.between_runs * normal(random);
    pass = pass || (stages == 2 && sum / (attempts + more_attempts) >= second);
    if (pass) ++passed;
  }
  return static_cast<double>(passed) / kCells;
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
  constexpr double kError = 0.01;  // three standard errors of 20,000 cells
  for (const auto& fleet : {HealthyFleet{.margin = 0.01, .between_nodes = 0.005, .between_runs = 0.01},
                            HealthyFleet{.margin = 0, .between_nodes = 0, .between_runs = 0.01},
                            HealthyFleet{.margin = 0.02, .between_nodes = 0.01, .between_runs = 0.02}}) {
    EXPECT_NEAR(chance_to_pass(fleet, 3, 4, kRisk, {}, kManySubjects), share_that_passes(fleet, 3, 4), kError);
    EXPECT_NEAR(chance_to_pass(fleet, 3, 0, kRisk, {}, kManySubjects), share_that_passes(fleet, 3, 0), kError);
  }
}

TEST(acceptance, at_the_limit_a_cell_passes_with_the_risk_at_most) {
  const HealthyFleet at_limit{.margin = 0, .between_nodes = 0, .between_runs = 0.01};
  EXPECT_NEAR(chance_to_pass(at_limit, 3, 0, kRisk, {}, kManySubjects), kRisk, 0.001);
  EXPECT_LE(chance_to_pass(at_limit, 3, 4, kRisk, {}, kManySubjects), kRisk);
}

TEST(acceptance, few_attempts_of_one_node_are_a_wide_band) {
  const HealthyFleet fleet{.margin = 0.04, .between_nodes = 0.005, .between_runs = 0.02};
  EXPECT_LT(chance_to_pass(fleet, 3, 0, kRisk, {}, 1), chance_to_pass(fleet, 3, 0, kRisk, {}, 100));
  EXPECT_LT(chance_to_pass(fleet, 3, 0, kRisk, {}, 1), chance_to_pass(fleet, 3, 4, kRisk, {}, 1));
  EXPECT_LT(chance_to_pass(fleet, 3, 4, kRisk, {.instrument = 0.02}, 100), chance_to_pass(fleet, 3, 4, kRisk, {}, 100));
  EXPECT_LT(chance_to_pass(fleet, 3, 4, kRisk, {.between_runs = 0.1}, 100),
            chance_to_pass(fleet, 3, 4, kRisk, {}, 100));
}

TEST(acceptance, one_attempt_passes_by_what_is_stated) {
  const HealthyFleet fleet{.margin = 0.04, .between_nodes = 0, .between_runs = 0.01};
  const auto chance = [&](const StatedUncertainty& stated) { return chance_to_pass(fleet, 1, 0, 0.05, stated, 1); };
  EXPECT_NEAR(chance({.reproducibility = 0.01}), normal_cdf(4 - 1.6449), 1e-4);
  EXPECT_NEAR(chance({.between_runs = 0.02, .reproducibility = 0.01}), normal_cdf(4 - 2 * 1.6449), 1e-4);
  EXPECT_NEAR(chance({.between_runs = 0.005}), normal_cdf(4 - 6.3138 / 2), 1e-4);  // t(0.95, 1)
}

TEST(acceptance, a_plan_counts_its_required_medians_and_what_nothing_measures) {
  const HealthyFleet fleet;
  const AcceptanceChance chance = acceptance_chance(plan_to_accept({kRate, kCount}, 20), fleet);
  EXPECT_EQ(chance.cells, 20U);
  EXPECT_NEAR(chance.accepted, std::pow(chance_to_pass(fleet, 3, 4, kRisk, {}, 20), 20), 1e-4);
  const AcceptanceChance without = acceptance_chance(
      plan_to_accept({kRate, R"({"probe": "absent", "limit": {"at_least": 1, "unit": "B/s"}})"}, 2), fleet);
  EXPECT_EQ(without.unplanned, 2U);
  EXPECT_EQ(without.accepted, 0);
}

TEST(acceptance, a_larger_fleet_is_accepted_less_often) {
  const HealthyFleet fleet{.margin = 0.02, .between_nodes = 0.005, .between_runs = 0.01};
  EXPECT_LT(acceptance_chance(plan_to_accept({kRate}, 64), fleet).accepted,
            acceptance_chance(plan_to_accept({kRate}, 8), fleet).accepted);
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
