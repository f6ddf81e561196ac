// What two parties agree on for hours under load: which boundaries keep their risks, and which agreements are refused.
#include "orchestrator/plan/agreed_stability.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/soak.h"

namespace assay::plan::agreed_stability_test {
namespace {

constexpr StabilityDesign kDesign{.looks = 6,
                                  .nodes = 4,
                                  .hours = 12,
                                  .least_hours = 10.8,
                                  .tolerated = 4,
                                  .refused_mtbf_h = 28,
                                  .accepted_mtbf_h = 180,
                                  .vendor_risk = 0.08,
                                  .buyer_risk = 0.08};

/// P(Poisson(mean) <= most), by its definition.
double at_most(int most, double mean) {
  double sum = 0;
  for (int k = 0; k <= most; ++k) sum += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
  return sum;
}

}  // namespace

TEST(stability_test, at_its_end_accepts_with_the_probability_of_so_few_interruptions) {
  for (const int tolerated : {0, 1, 4, 30}) {
    StabilityDesign design = kDesign;
    design.tolerated = tolerated;
    for (const double mean : {0.1, 1.0, 8.0}) {
      const TestEnd end = test_end(looks_at_end(design), mean);
      EXPECT_NEAR(end.accepted, at_most(tolerated, 6 * mean), 1e-10) << tolerated << " " << mean;
    }
  }
}

TEST(stability_test, early_boundaries_keep_both_risks_and_made_up_paths_end_as_computed) {
  std::mt19937_64 random(3);
  for (const double risk : {0.08, 0.05}) {
    for (const int tolerated : {4, 5}) {
      StabilityDesign design = kDesign;
      design.vendor_risk = design.buyer_risk = risk;
      design.tolerated = tolerated;
      design.refused_mtbf_h = 20;
      const auto looks = looks_of_wald(design);
      EXPECT_TRUE(risk_of(looks, design).keeps(design)) << risk << " " << tolerated;
      EXPECT_GE(looks.front().accept, -1);
      EXPECT_TRUE(looks[3].accept >= 0) << risk << " " << tolerated;
      for (const double mean : {0.2, 0.5, 1.0, 2.0}) {
        std::poisson_distribution<int> more(mean);
        constexpr int kPaths = 40'000;
        int accepted = 0;
        double made = 0;
        for (int i = 0; i < kPaths; ++i) {
          std::vector<int> path;
          int sum = 0;
          for (std::size_t look = 0; look < looks.size(); ++look) path.push_back(sum += more(random));
          const auto crossed = crossing(looks, path);
          ASSERT_TRUE(crossed);
          accepted += crossed->accepted ? 1 : 0;
          made += static_cast<double>(crossed->look + 1);
        }
        const TestEnd end = test_end(looks, mean);
        EXPECT_NEAR(end.accepted, accepted * 1.0 / kPaths, 0.01) << mean;
        EXPECT_NEAR(end.looks, made / kPaths, 0.05) << mean;
      }
    }
  }
}

TEST(stability_test, decides_where_a_path_first_meets_a_boundary_and_nowhere_before_its_look) {
  const std::vector<Look> looks = {{.hours = 1, .accept = -1, .reject = 2}, {.hours = 2, .accept = 0, .reject = 3}};
  const auto at = [&](std::vector<int> path) { return crossing(looks, path); };
  EXPECT_FALSE(at({}));
  EXPECT_FALSE(at({0}));
  EXPECT_TRUE(at({0, 0})->accepted);
  EXPECT_EQ(at({2, 2})->look, 0U);
  EXPECT_FALSE(at({2, 0})->accepted);
  EXPECT_FALSE(at({1, 2}));
}

TEST(agreed_stability, is_in_the_plan_with_its_boundaries_and_read_again) {
  const auto plan = fixture::soak_plan("hours=72,tolerated=4,refused=28,accepted=180,vendor=8,buyer=8,stop=early");
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->looks.size(), 6U);
  EXPECT_EQ(plan->steps.front().attempts, 6);
  EXPECT_EQ(plan->looks[1], (Look{.hours = 24, .accept = 0, .reject = 3}));
  EXPECT_EQ(plan->looks.back(), (Look{.hours = 72, .accept = 4, .reject = 5}));
  const std::string text = plan_text(*plan);
  const auto again = read_plan(text, "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->agreed_stability, plan->agreed_stability);
  for (const char* words : {"72 h of each of 4 nodes with at most 4 interruptions (ended+silent+error) of all",
                            "24 h: accepted up to 0, refused from 3", "28 h: "})
    EXPECT_NE(stability_text(*again).find(words), std::string::npos) << stability_text(*again);
  std::string changed = text;
  changed.replace(changed.find("\"accept\": 0"), 11, "\"accept\": 1");
  EXPECT_FALSE(read_plan(changed, "plan.json"));
}

TEST(agreed_stability, hours_without_interruption_bound_the_time_between_two) {
  const auto plan = fixture::soak_plan("hours=12,tolerated=0,refused=14,accepted=940,vendor=5,buyer=5");
  ASSERT_TRUE(plan) << plan.error().text();
  const StabilityRisk risk = risk_of(plan->looks, stability_design(*plan));
  EXPECT_NEAR(risk.buyer, std::exp(-4 * 12 * 0.9 / 14), 1e-9);  // none in 90 % of 48 h
  EXPECT_NEAR(risk.vendor, 1 - std::exp(-4 * 12 / 940.0), 1e-9);
}

TEST(agreed_stability, what_no_plan_can_keep_or_mean_is_refused_with_its_place) {
  const std::string kept = "hours=72,tolerated=4,refused=28,accepted=180,vendor=8,buyer=8";
  const auto of = [](const char* limit) {
    return std::string(R"({"probe": "soak", "metric": "interruptions", "statistic": "max", "repeat": {"n": 1},
      "limit": {"at_most": 9, "unit": "1"})") +
           limit + "}";
  };
  const auto requirements = fixture::soak_requirements();
  struct Case {
    std::string text, words;
    std::vector<std::string> of = fixture::soak_requirements();
    bool quick = false;
  };
  const std::vector<Case> cases = {
      {"hours=72", "has no refused"},
      {kept + ",hours=2", "hours is given twice"},
      {kept + ",bounds=2", "'bounds' is none of its numbers"},
      {"hours=72,tolerated=x,refused=28,accepted=180,vendor=8,buyer=8", "'tolerated=x' is not a number"},
      {"hours=72,tolerated=1.5,refused=28,accepted=180,vendor=8,buyer=8", "1.5 is no whole number"},
      {"hours=72,tolerated=-1,refused=28,accepted=180,vendor=8,buyer=8", "-1 is no whole number"},
      {"hours=72,tolerated=4,refused=180,accepted=28,vendor=8,buyer=8", "refused=180 is not below accepted=28"},
      {"hours=72,tolerated=4,refused=28,accepted=28,vendor=8,buyer=8", "refused=28 is not below accepted=28"},
      {"hours=72,tolerated=4,refused=28,accepted=180,vendor=0,buyer=8", "--stability: vendor: 0 is not between"},
      {"hours=72,tolerated=4,refused=28,accepted=180,vendor=8,buyer=nan", "buyer: nan is not between"},
      {"hours=0,tolerated=4,refused=28,accepted=180,vendor=8,buyer=8", "hours: 0 is not between"},
      {kept + ",stop=soon", "'soon' is not known"},
      {kept + ",counts=ended+lost", "'lost' is no class"},
      {kept + ",counts=ended+ended", "'ended+ended' is no set of classes"},
      {kept + ",counts=ended", "counts ended, and r0 judges every class"},
      {"hours=6,tolerated=4,refused=28,accepted=180,vendor=8,buyer=8", "a window of 6 h is shorter than one attempt"},
      {"hours=30,tolerated=4,refused=28,accepted=180,vendor=8,buyer=8", "30 h are not 1 to 100 attempts of 12 h"},
      {"hours=12,tolerated=0,refused=14,accepted=940,vendor=5,buyer=5,stop=early", "has nothing to stop"},
      {"hours=72,tolerated=1,refused=28,accepted=180,vendor=8,buyer=8", "do not keep it"},
      {kept, "tolerates 1 of a node, and the agreement 4 of all", fixture::soak_requirements(1)},
      {kept, "has 0 required counts of interruptions", {R"({"limit": {"at_least": 100, "unit": "B/s"}})"}},
      {kept, "has 2 required counts of interruptions",
       fixture::soak_requirements(9, {of(R"(, "at": {"class": "ended"})")})},
      {kept, "nothing requires a share of the hours to be under load", {requirements[0]}},
      {kept, "a rehearsal has no hours under load", requirements, true},
  };
  for (const auto& one : cases) {
    const auto plan = fixture::soak_plan(one.text, 4, one.of, one.quick);
    ASSERT_FALSE(plan) << one.text << " " << one.words;
    EXPECT_NE(plan.error().text().find(one.words), std::string::npos) << one.text << ": " << plan.error().text();
  }
  const auto hint = fixture::soak_plan("hours=72,tolerated=1,refused=28,accepted=180,vendor=8,buyer=8");
  EXPECT_NE(hint.error().text().find("hours=60,tolerated=3 keep it"), std::string::npos) << hint.error().text();
}

}  // namespace assay::plan::agreed_stability_test
