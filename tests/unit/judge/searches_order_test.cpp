// Searches: what they are made for, which comes first, whom they leave out, and when no node is to blame.
#include <gtest/gtest.h>

#include "orchestrator/judge/locate/searches.h"
#include "tests/unit/judge/search_fleet.h"

namespace assay::judge {
namespace {

using fixture::Fleet;
using fixture::holds;
using fixture::kAlone;
using fixture::kWhole;
using fixture::Names;
using fixture::with;

constexpr const char* kAdvisory =
    R"({"probe": "fabric", "scope": "cluster", "severity": "advisory", "limit": {"at_least": 100, "unit": "B/s"}})";
constexpr const char* kAdvisoryAlone =
    R"({"probe": "fabric", "scope": "cluster", "severity": "advisory", "parameters": {"size": 5}, "limit": {"at_least": 100, "unit": "B/s"}})";

TEST(searches, nodes_that_are_alike_and_short_are_a_common_cause_and_no_node_is_accused) {
  const auto verdict = Fleet({kWhole}, 16, [](const Names&) { return true; }).search().judged();
  ASSERT_TRUE(verdict) << verdict.error().text();
  ASSERT_EQ(verdict->localised.size(), 1U);
  const Localised& found = verdict->localised[0];
  EXPECT_EQ(found.state, SearchState::common_cause);
  EXPECT_TRUE(found.culprits.empty());
  EXPECT_TRUE(found.undecided.empty());
  EXPECT_TRUE(found.reason.starts_with("Common cause: ")) << found.reason;
  EXPECT_NE(verdict->reason.find("All nodes are alike in 0001-fabric-cluster: a common cause, no node is accused."),
            std::string::npos)
      << verdict->reason;
}

TEST(searches, a_test_says_how_far_it_is_from_its_limit_and_from_its_controls) {
  const auto verdict = Fleet({kWhole}, 8, with("n3")).search().judged();
  const Localised& found = verdict->localised.at(0);
  for (const auto& id : found.culprits.at(0).tests) {
    const auto made = std::ranges::find(found.tests, id, &MadeTest::id);
    EXPECT_DOUBLE_EQ(made->share.value(), 0.5);
    EXPECT_DOUBLE_EQ(made->control.value(), 1.1);
  }
}

TEST(searches, an_advisory_shortfall_of_the_same_step_is_not_searched_beside_a_required_one) {
  const auto verdict = Fleet({kWhole, kAdvisory}, 8, with("n3")).search().judged();
  ASSERT_EQ(verdict->localised.size(), 1U);
  EXPECT_EQ(verdict->localised[0].requirements, Names{"r0"});
}

TEST(searches, advisory_shortfalls_are_searched_after_all_required_ones) {
  Fleet fleet({kAdvisoryAlone, kWhole}, 8, with("n3"));
  const auto results = fleet.judged()->results;
  const Searches searches(fleet.plan, results, fleet.journal, fleet.reader());
  for (const auto& test : searches.open()) {
    const auto& id = test.step.requirements.at(0);
    EXPECT_TRUE(fleet.plan.requirement(id)->required) << test.step.id;
  }
  EXPECT_FALSE(searches.open().empty());
}

TEST(searches, a_figure_that_was_taken_under_other_conditions_than_demanded_is_not_searched_for) {
  Result result{.outcome = Outcome::inconclusive, .value = 50, .limit_low = 100};
  EXPECT_TRUE(falls_short(result));
  result.conditions =
      std::vector<ConditionSeen>{{.name = "pinned", .demanded = "= true", .seen = std::nullopt, .met = false}};
  EXPECT_FALSE(falls_short(result));
  result.outcome = Outcome::conditional_pass;
  EXPECT_FALSE(falls_short(result));
  result.outcome = Outcome::conditional_fail;
  EXPECT_TRUE(falls_short(result));
}

}  // namespace
}  // namespace assay::judge
