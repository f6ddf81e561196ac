// How often each step is measured, and in which order.
#include "orchestrator/plan/passes.h"

#include <gtest/gtest.h>

#include "orchestrator/plan/forecast.h"
#include "tests/unit/fixture.h"

namespace assay::plan::passes_test {
namespace {

using Ids = std::vector<std::string>;

/// A requirement of the probe disk with another size, so that it has steps of its own.
std::string alone(int size, int attempts, int more_attempts, const std::string& rest = "") {
  return R"({"parameters": {"size": )" + std::to_string(size) + R"(}, "limit": {"at_least": 100, "unit": "B/s"}, )" +
         R"("repeat": {"attempts": )" + std::to_string(attempts) + R"(, "more_attempts": )" +
         std::to_string(more_attempts) + "}" + rest + "}";
}

Plan plan_with_passes(const std::vector<std::string>& requirements, int nodes, const PlanOptions& options = {}) {
  return *make_plan(fixture::profile(requirements), fixture::site(nodes), fixture::programs(), options);
}

/// The sizes and nodes of a pass: "1@n1".
Ids turns(const Passes& passes, Stage stage, int pass) {
  Ids all;
  for (const Step* step : passes.steps(stage, pass)) {
    const auto size = step->parameters.find("size");
    all.push_back(std::to_string(std::get<std::int64_t>(size->second)) + "@" + step->nodes.front() +
                  (step->nodes.size() > 1 ? "…" : ""));
  }
  return all;
}

std::string refusal_of(const std::string& requirement) {
  const auto read =
      read_profile(fixture::profile_text({requirement}), "p.json", [](const std::string&) { return std::nullopt; });
  return read ? "" : read.error().text();
}

/// The document of one requirement without any word of how often.
nlohmann::json silent() {
  auto document = nlohmann::json::parse(fixture::profile_text({R"({"limit": {"at_least": 1, "unit": "B/s"}})"}));
  document["requirements"][0].erase("repeat");
  document["requirements"][0].erase("reproducibility");
  return document;
}

Requirement read_one(const nlohmann::json& document) {
  return read_profile(document.dump(), "p.json", [](const std::string&) { return std::nullopt; })->requirements.at(0);
}

}  // namespace

TEST(repeat, a_median_is_measured_three_times_and_four_times_more_where_that_is_not_enough) {
  const Requirement requirement = read_one(silent());
  EXPECT_EQ(requirement.attempts, 3);
  EXPECT_EQ(requirement.more_attempts, 4);
  EXPECT_FALSE(requirement.reproducibility);
}

TEST(repeat, an_extreme_is_measured_once) {
  auto document = silent();
  document["requirements"][0]["statistic"] = "min";
  const Requirement requirement = read_one(document);
  EXPECT_EQ(requirement.attempts, 1);
  EXPECT_EQ(requirement.more_attempts, 0);
}

TEST(repeat, a_required_median_of_one_run_is_refused_unless_a_document_says_how_far_runs_lie_apart) {
  auto document = silent();
  document["requirements"][0]["repeat"] = {{"attempts", 1}};
  const auto refused = read_profile(document.dump(), "p.json", [](const std::string&) { return std::nullopt; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "p.json: requirements[0].repeat.attempts");
  EXPECT_NE(refused.error().hint.find("`reproducibility`"), std::string::npos);
  document["requirements"][0]["severity"] = "advisory";
  EXPECT_EQ(read_one(document).attempts, 1);
  document["requirements"][0].erase("severity");
  document["requirements"][0]["reproducibility"] = {{"u", 0.01},
                                                    {"source", {{"document", "d"}, {"status", "sourced"}}}};
  EXPECT_EQ(read_one(document).reproducibility->u, 0.01);
  document["requirements"][0]["reproducibility"]["source"]["status"] = "unsourced";
  EXPECT_FALSE(read_profile(document.dump(), "p.json", [](const std::string&) { return std::nullopt; }));
}

TEST(repeat, more_than_ten_attempts_are_refused) {
  EXPECT_NE(refusal_of(alone(4, 11, 0)).find("requirements[0].repeat.attempts"), std::string::npos);
  EXPECT_NE(refusal_of(alone(4, 1, 11)).find("requirements[0].repeat.more_attempts"), std::string::npos);
}

TEST(passes, a_step_is_measured_as_often_as_the_requirement_that_wants_most) {
  const Plan plan = plan_with_passes({alone(4, 2, 1), alone(4, 5, 0), alone(4, 1, 3)}, 1);
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].attempts, 5);
  EXPECT_EQ(plan.steps[0].more_attempts, 3);
}

TEST(passes, a_rehearsal_takes_one) {
  const Plan plan = plan_with_passes({alone(4, 3, 4)}, 1, {.quick = true});
  EXPECT_EQ(plan.steps[0].attempts, 1);
  EXPECT_EQ(plan.steps[0].more_attempts, 0);
}

TEST(passes, attempts_of_a_step_lie_apart_and_begin_further_on_in_each_pass) {
  const Plan plan = plan_with_passes({alone(1, 3, 0), alone(2, 3, 0), alone(3, 3, 0)}, 1);
  const Passes passes(plan);
  EXPECT_EQ(passes.count(Stage::first), 3);
  EXPECT_EQ(passes.count(Stage::second), 0);
  EXPECT_EQ(turns(passes, Stage::first, 1), (Ids{"1@n1", "2@n1", "3@n1"}));
  EXPECT_EQ(turns(passes, Stage::first, 2), (Ids{"2@n1", "3@n1", "1@n1"}));
  EXPECT_EQ(turns(passes, Stage::first, 3), (Ids{"3@n1", "1@n1", "2@n1"}));
}

TEST(passes, no_attempt_follows_one_of_the_same_step_when_there_are_others) {
  for (int rows = 2; rows <= 9; ++rows) {
    std::vector<std::string> requirements;
    for (int i = 1; i <= rows; ++i) requirements.push_back(alone(i, 4, 0));
    const Plan plan = plan_with_passes(requirements, 1);
    const Passes passes(plan);
    const Step* last = nullptr;
    for (int pass = 1; pass <= 4; ++pass) {
      for (const Step* step : passes.steps(Stage::first, pass)) {
        EXPECT_NE(step, last) << rows << " rows, pass " << pass;
        last = step;
      }
    }
  }
}

TEST(passes, those_that_want_fewer_attempts_are_in_the_first_passes_and_pairs_come_after_nodes_in_each) {
  const Plan plan = plan_with_passes({alone(1, 1, 0), alone(2, 2, 1),
                                      R"({"probe": "fabric", "scope": "cluster", "parameters": {"size": 7},
                                 "limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2}})"},
                                     2);
  const Passes passes(plan);
  EXPECT_EQ(turns(passes, Stage::first, 1), (Ids{"1@n1", "1@n2", "2@n1", "2@n2", "7@n1…"}));
  EXPECT_EQ(turns(passes, Stage::first, 2), (Ids{"2@n1", "2@n2", "7@n1…"}));
  EXPECT_EQ(turns(passes, Stage::second, 1), (Ids{"2@n1", "2@n2"}));
}

TEST(passes, what_is_measured_after_the_load_comes_at_the_very_end_of_both_stages) {
  const Plan plan = plan_with_passes({alone(1, 1, 0, R"(, "after": true)"), alone(1, 1, 0), alone(2, 3, 2),
                                      R"({"probe": "fabric", "scope": "cluster", "parameters": {"size": 7},
                                 "limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3}})"},
                                     2);
  EXPECT_EQ(plan.steps.back().after, true);
  const Passes passes(plan);
  EXPECT_EQ(turns(passes, Stage::first, 1), (Ids{"1@n1", "1@n2", "2@n1", "2@n2", "7@n1…"}));
  EXPECT_EQ(turns(passes, Stage::first, 3), (Ids{"2@n1", "2@n2", "7@n1…", "1@n1", "1@n2"}));
  EXPECT_EQ(turns(passes, Stage::second, 1), (Ids{"2@n1", "2@n2"}));
  EXPECT_EQ(turns(passes, Stage::second, 2), (Ids{"2@n1", "2@n2", "1@n1", "1@n2"}));
}

TEST(passes, a_plan_with_attempts_is_read_back) {
  const Plan plan = plan_with_passes({alone(1, 2, 3, R"(, "after": true)")}, 2);
  const auto again = read_plan(plan_text(plan), "p");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->steps[0].attempts, 2);
  EXPECT_EQ(again->steps[0].more_attempts, 3);
  EXPECT_TRUE(again->steps[0].after);
}

TEST(passes, the_forecast_knows_them_and_what_a_second_stage_may_add) {
  constexpr double kStep_s = 10;  // what the fixture's probes say of themselves
  const Plan plan = plan_with_passes({alone(1, 3, 4), alone(2, 1, 0)}, 4);
  EXPECT_EQ(durations_of(plan).first_s, 4 * kStep_s);
  EXPECT_EQ(durations_of(plan).most_s, 8 * kStep_s);
  Forecast forecast(plan);
  forecast.begin(plan.steps[0], 0);
  forecast.end(plan.steps[0].id);
  EXPECT_EQ(forecast.remaining_s(0), 4 * kStep_s);  // the other nodes have all before them
  for (const auto& step : plan.steps) forecast.set_left(step.id, 0);
  EXPECT_EQ(forecast.remaining_s(0), 0);
  forecast.add_second_stage({&plan.steps[0]});
  EXPECT_EQ(forecast.remaining_s(0), 4 * kStep_s);
  forecast.begin(plan.steps[0], 100);
  EXPECT_EQ(forecast.remaining_s(100), 4 * kStep_s);
  forecast.set_left(plan.steps[0].id, 1);
  forecast.end(plan.steps[0].id);
  EXPECT_EQ(forecast.remaining_s(100), kStep_s);
}

}  // namespace assay::plan::passes_test
