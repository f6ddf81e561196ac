// Contrasts in profiles and plans: what is refused, their two steps, and in which order these are measured.
#include "orchestrator/plan/contrast.h"

#include <gtest/gtest.h>

#include "orchestrator/plan/forecast.h"
#include "orchestrator/plan/loosened.h"
#include "orchestrator/plan/passes.h"
#include "tests/unit/fixture.h"

namespace assay::plan::contrast_test {
namespace {

using Words = std::vector<std::string>;

/// A contrast of the probe disk, with other members.
std::string contrast(const std::string& rest = "", const std::string& switched = "") {
  return R"({"contrast": {"parameter": "size", "on": 8, "off": 4, "at_least": 0.05, "shown_by": "direct_io")" +
         switched + R"(}, "repeat": {"attempts": 3, "more_attempts": 2})" + rest + "}";
}
const std::string kOrdinary =
    R"({"parameters": {"size": 8}, "limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 4, "more_attempts": 0}})";

Plan plan_of(const std::vector<std::string>& requirements, int nodes, const PlanOptions& options = {}) {
  auto plan = make_plan(fixture::profile(requirements), fixture::site(nodes), fixture::programs(), options);
  if (!plan) throw std::runtime_error(plan.error().text());
  return *plan;
}

/// "8@n1": the switch and the first node.
Words turns(const Plan& plan, int pass, Stage stage = Stage::first) {
  Words all;
  for (const Step* step : Passes(plan).steps(stage, pass))
    all.push_back(std::to_string(std::get<std::int64_t>(step->parameters.at("size"))) + "@" + step->nodes.front());
  return all;
}

std::string refusal_of(const std::string& requirement) {
  const auto profile =
      read_profile(fixture::profile_text({requirement}), "p.json", [](const std::string&) { return std::nullopt; });
  if (!profile) return profile.error().where + " " + profile.error().what;
  const auto plan = make_plan(*profile, fixture::site(1), fixture::programs(), {});
  return plan ? "" : plan.error().where + " " + plan.error().what;
}

struct Refused {
  std::string requirement, words;
};

}  // namespace

TEST(contrast, is_a_ratio_that_must_be_above_1_by_its_gain_and_is_written_as_it_was_given) {
  const Profile profile = fixture::profile({contrast()});
  const Requirement& requirement = profile.requirements[0];
  EXPECT_EQ(requirement.limit.at_least, 1.05);
  EXPECT_EQ(requirement.limit.unit, "1");
  EXPECT_EQ(requirement.figure(), "gain in bandwidth by size");
  EXPECT_TRUE(requirement.is_of_others());
  EXPECT_EQ(gain_words(*requirement.contrast), "a gain of at least 5 % is demanded");
  const auto document = to_json(profile);
  EXPECT_FALSE(document["requirements"][0].contains("limit"));
  EXPECT_EQ(document["requirements"][0]["contrast"]["shown_by"], "direct_io");
  EXPECT_EQ(to_json(*read_profile(document.dump(), "p", [](const std::string&) { return std::nullopt; })), document);
}

TEST(contrast, may_allow_a_loss_but_not_of_everything) {
  const Requirement requirement = fixture::profile({contrast("", R"(, "at_least": -0.1)")}).requirements[0];
  EXPECT_EQ(requirement.limit.at_least, 0.9);
  EXPECT_EQ(gain_words(*requirement.contrast), "a loss of at most 10 % is allowed");
  EXPECT_NE(refusal_of(nlohmann::json::parse(contrast("", R"(, "at_least": -1)")).dump()), "");
}

TEST(contrast, refuses_what_does_not_go_with_it) {
  const std::string at = "p.json: requirements[0]";
  const Refused cases[] = {
      {"{}", at + " the field 'limit' is missing"},
      {contrast(R"(, "limit": {"at_least": 1, "unit": "B/s"})"), at + ".contrast is given together with limit"},
      {contrast(R"(, "parameters": {"size": 8})"), at + ".parameters.size is the parameter of the contrast"},
      {contrast(R"(, "statistic": "min")"), at + ".statistic does not go with contrast"},
      {contrast(R"(, "ceiling": {"value": 2, "source": {"document": "d", "status": "sourced"}})"),
       at + ".ceiling does not go with contrast"},
      {contrast("", R"(, "off": 8)"), "profile p: requirements[0].contrast.off is the same value as `on`"},
      {contrast("", R"(, "parameter": "sizes")"),
       "profile p: requirements[0].contrast.parameter disk has no parameter 'sizes'"},
      {contrast("", R"(, "shown_by": "direct")"),
       "profile p: requirements[0].contrast.shown_by disk records no 'direct'"},
      {contrast("", R"(, "parameter": "allow_settings")"), at + ".contrast.parameter 'allow_settings' is no switch"},
      {contrast(R"(, "probe": "checked", "metric": "mismatches")", R"(, "parameter": "sizes", "on": "1", "off": "2")"),
       "profile p: requirements[0].metric mismatches has no better side to gain on"},
  };
  for (const auto& [requirement, words] : cases) {
    // A member that is given twice in these texts has the value given last.
    EXPECT_EQ(refusal_of(nlohmann::json::parse(requirement).dump()), words) << requirement;
  }
}

TEST(contrast, has_a_step_with_the_feature_on_and_one_with_it_off_and_one_cell_in_each_place) {
  const Plan plan = plan_of({contrast()}, 2);
  ASSERT_EQ(plan.steps.size(), 4U);
  ASSERT_EQ(plan.coverage.size(), 2U);
  for (const auto& cell : plan.coverage) {
    const Step& on = *plan.step(cell.step);
    const Step& off = *plan.step(cell.against);
    EXPECT_EQ(on.parameters.at("size"), Value{std::int64_t{8}});
    EXPECT_EQ(off.parameters.at("size"), Value{std::int64_t{4}});
    EXPECT_EQ(on.nodes, off.nodes);
    EXPECT_EQ(off.attempts, 3);
  }
  EXPECT_TRUE(read_plan(plan_text(plan), "plan.json"));
  const double once = durations_of(plan_of({kOrdinary}, 1)).first_s / 4;
  EXPECT_DOUBLE_EQ(durations_of(plan_of({contrast()}, 1)).first_s, 6 * once);
}

TEST(contrast, is_measured_in_turn_on_each_node_and_begins_with_the_other_side_in_the_next_pass) {
  const Plan plan = plan_of({contrast()}, 2);
  EXPECT_EQ(turns(plan, 1), (Words{"8@n1", "4@n1", "8@n2", "4@n2"}));
  EXPECT_EQ(turns(plan, 2), (Words{"4@n1", "8@n1", "4@n2", "8@n2"}));
  EXPECT_EQ(turns(plan, 3), turns(plan, 1));
  EXPECT_EQ(turns(plan, 1, Stage::second), turns(plan, 2));
}

TEST(contrast, shares_the_steps_of_ordinary_requirements_with_the_same_parameters) {
  const std::string between = R"({"parameters": {"size": 6}, "limit": {"at_least": 1, "unit": "B/s"}})";
  const Plan plan = plan_of({kOrdinary, between, contrast()}, 1);
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(plan.steps[0].requirements, (Words{"r0", "r2"}));
  EXPECT_EQ(plan.steps[2].requirements, Words{"r2"});
  EXPECT_EQ(plan.steps[2].attempts, 4);  // a pair in each pass
  EXPECT_EQ(turns(plan, 1), (Words{"8@n1", "4@n1", "6@n1"}));
  EXPECT_EQ(turns(plan, 2), (Words{"4@n1", "8@n1"}));
}

TEST(contrast, of_two_switches_with_one_step_on_is_one_unit) {
  const std::string other = contrast("", R"(, "off": 2)");
  const Plan plan = plan_of({contrast(), nlohmann::json::parse(other).dump()}, 1);
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(turns(plan, 1), (Words{"8@n1", "4@n1", "2@n1"}));
  EXPECT_EQ(turns(plan, 2), (Words{"2@n1", "4@n1", "8@n1"}));
}

TEST(contrast, of_a_group_is_not_searched_for_a_node_at_fault) {
  const Plan plan = plan_of({contrast(R"(, "probe": "fabric", "scope": "cluster")")}, 4);
  EXPECT_TRUE(plan.searches.empty());
}

TEST(contrast, is_loosened_by_a_smaller_gain_another_switch_or_another_proof) {
  const auto one = [](const std::string& text) {
    return fixture::profile({nlohmann::json::parse(text).dump()}).requirements[0];
  };
  const auto looser = loosened_in(one(contrast()), one(contrast("", R"(, "at_least": 0.01, "off": 2)")), "base");
  ASSERT_EQ(looser.size(), 2U);
  EXPECT_EQ(looser[0].what, "contrast.at_least");
  EXPECT_EQ(looser[0].to, "0.01");
  EXPECT_EQ(looser[1].what, "contrast.switch");
  EXPECT_TRUE(loosened_in(one(contrast()), one(contrast("", R"(, "at_least": 0.1)")), "base").empty());
}

}  // namespace assay::plan::contrast_test
