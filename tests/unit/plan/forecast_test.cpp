// How long what is left will take.
#include "orchestrator/plan/forecast.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

constexpr const char* kAlone = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
constexpr double kStep_s = 10;  // what the fixture's probes say of themselves

Plan plan_of(const std::vector<std::string>& requirements, int nodes, std::optional<double> cap_w = {}) {
  Profile profile = fixture::profile(requirements);
  site::Site site = fixture::site(nodes);
  profile.power_w = 100;
  site.power_cap_w = cap_w;
  return *make_plan(profile, site, fixture::programs(), {});
}

}  // namespace

TEST(forecast, nodes_work_side_by_side_pairs_round_by_round_and_the_whole_after_all) {
  const Plan plan = plan_of({kAlone, fixture::kPairs, fixture::kWhole}, 4);
  EXPECT_EQ(Forecast(plan).remaining_s(0), (1 + 3 + 1) * kStep_s);
}

TEST(forecast, a_running_step_counts_with_what_is_left_of_it_and_an_ended_one_not_at_all) {
  const Plan plan = plan_of({kAlone}, 1);
  Forecast forecast(plan);
  forecast.begin(plan.steps[0], 100);
  EXPECT_EQ(forecast.remaining_s(104), 6);
  EXPECT_EQ(forecast.remaining_s(200), 0);
  forecast.end(plan.steps[0].id);
  EXPECT_EQ(forecast.remaining_s(101), 0);
}

TEST(forecast, what_a_step_took_is_expected_of_those_like_it_and_of_no_others) {
  const Plan plan = plan_of({kAlone, R"({"parameters": {"size": 2}, "limit": {"at_least": 100, "unit": "B/s"}})"}, 2);
  ASSERT_EQ(plan.steps.size(), 4U);  // of each node one of each size
  Forecast forecast(plan);
  const auto of_size_4 = [](const Step& step) { return step.parameters.at("size") == Value{std::int64_t{4}}; };
  const Step& done = *std::ranges::find_if(plan.steps, of_size_4);
  forecast.begin(done, 0);
  forecast.end(done.id);
  forecast.took(done, 110);
  const Step& like = *std::find_if(plan.steps.rbegin(), plan.steps.rend(), of_size_4);
  const Step& other = *std::ranges::find_if_not(plan.steps, of_size_4);
  ASSERT_NE(like.id, done.id);
  EXPECT_EQ(forecast.typical_s(like), 110);
  EXPECT_EQ(forecast.typical_s(other), kStep_s);
  EXPECT_EQ(forecast.remaining_s(110), 110 + kStep_s);
  forecast.took(done, 100);
  forecast.took(like, 120);
  EXPECT_EQ(forecast.typical_s(like), 110);
}

TEST(forecast, a_step_that_never_begins_takes_no_time) {
  const Plan plan = plan_of({kAlone, fixture::kWhole}, 2);
  Forecast forecast(plan);
  forecast.set_left("0003-fabric-cluster", 0);
  EXPECT_EQ(forecast.remaining_s(0), kStep_s);
}

TEST(forecast, a_power_cap_makes_it_longer) {
  EXPECT_EQ(Forecast(plan_of({kAlone}, 8, 800)).remaining_s(0), kStep_s);
  EXPECT_EQ(Forecast(plan_of({kAlone}, 8, 200)).remaining_s(0), 4 * kStep_s);
}

TEST(forecast, quick_parameters_take_their_share_of_the_time) {
  const Profile profile = fixture::profile({kAlone});
  const auto quick = *make_plan(profile, fixture::site(1), fixture::programs(), {.quick = true});
  EXPECT_EQ(Forecast(quick).remaining_s(0), kStep_s / 2) << "the size is 2 instead of 4";
  const auto own =
      *make_plan(fixture::profile({R"({"parameters": {"size": 4}, "limit": {"at_least": 100, "unit": "B/s"}})"}),
                 fixture::site(1), fixture::programs(), {.quick = true});
  EXPECT_EQ(Forecast(own).remaining_s(0), kStep_s) << "the profile's own value is in force";
}

TEST(forecast, extra_tests_come_on_top) {
  const Plan plan = plan_of({kAlone}, 1);
  Forecast forecast(plan);
  forecast.set_left(plan.steps[0].id, 0);
  forecast.tests_left(7, kStep_s);
  EXPECT_EQ(forecast.remaining_s(0), 7 * kStep_s);
}

TEST(power, steps_know_what_their_nodes_draw_together) {
  const Plan plan = plan_of(
      {kAlone, R"({"probe": "fabric", "scope": "cluster", "power_w": 250, "limit": {"at_least": 100, "unit": "B/s"}})"},
      3, 800);
  EXPECT_EQ(plan.steps[0].power_w, 100);
  EXPECT_EQ(plan.steps[3].power_w, 750);
  const auto again = read_plan(plan_text(plan), "p");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->steps[3].power_w, 750);
  EXPECT_EQ(again->site.power_cap_w, 800);
}

TEST(power, a_step_over_the_cap_by_itself_cannot_be_planned) {
  Profile profile = fixture::profile({fixture::kWhole});
  site::Site site = fixture::site(3);
  site.power_cap_w = 250;
  EXPECT_NE(make_plan(profile, site, fixture::programs(), {}).error().text().find("profile p: power_w: is missing"),
            std::string::npos);
  profile.power_w = 100;
  EXPECT_NE(make_plan(profile, site, fixture::programs(), {})
                .error()
                .text()
                .find("step 0001-fabric-cluster draws 300 W on 3 nodes by design"),
            std::string::npos);
}

}  // namespace assay::plan
