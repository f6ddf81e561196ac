// Searches of a run: which are due, that the judge goes the same way again over the journal, and what it refuses.
#include "orchestrator/judge/locate/searches.h"

#include <gtest/gtest.h>

#include "orchestrator/plan/search_budget.h"
#include "tests/unit/judge/search_fleet.h"

namespace assay::judge {
namespace {

using fixture::Fleet;
using fixture::holds;
using fixture::kAlone;
using fixture::kByRack;
using fixture::kOfFleet;
using fixture::kPairs;
using fixture::kWhole;
using fixture::Names;
using fixture::with;
using fixture::with_both;

std::string refusal(const Fleet& fleet) {
  const auto verdict = fleet.judged();
  return verdict ? "accepted" : verdict.error().what;
}

}  // namespace

TEST(searches, a_bad_node_of_a_group_that_falls_short_is_named_with_the_tests_that_show_it) {
  const auto verdict = Fleet({kWhole}, 8, with("n3")).search().judged();
  ASSERT_TRUE(verdict) << verdict.error().text();
  ASSERT_EQ(verdict->localised.size(), 1U);
  const Localised& found = verdict->localised[0];
  EXPECT_EQ(found.step, "0001-fabric-cluster");
  EXPECT_EQ(found.requirements, Names{"r0"});
  EXPECT_EQ(found.state, SearchState::found);
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].fault, Fault::node);
  EXPECT_EQ(found.culprits[0].nodes, Names{"n3"});
  ASSERT_EQ(found.culprits[0].tests.size(), 2U);
  EXPECT_LE(found.tests.size(), found.budget);
  for (const auto& id : found.culprits[0].tests) {
    const auto made = std::ranges::find(found.tests, id, &MadeTest::id);
    ASSERT_NE(made, found.tests.end());
    EXPECT_EQ(made->outcome, TestOutcome::short_of_limit);
  }
  EXPECT_NE(verdict->reason.find("At fault: node n3."), std::string::npos) << verdict->reason;
}

TEST(searches, what_is_found_turns_no_fail_into_a_pass) {
  const auto verdict = Fleet({kWhole}, 8, with("n3")).search().judged();
  EXPECT_EQ(verdict->results.at(0).outcome, Outcome::fail);
  EXPECT_EQ(verdict->results.at(0).samples, 10U);
  EXPECT_EQ(verdict->results.at(0).attempts, 1);
  EXPECT_EQ(verdict->overall, Overall::rejected);
}

TEST(searches, a_shortfall_that_does_not_come_again_stays_a_fail_and_no_node_is_accused) {
  Fleet fleet({kWhole}, 8, [](const Names&) { return true; });
  fleet.is_short = [](const Names&) { return false; };
  const auto verdict = fleet.search().judged();
  EXPECT_EQ(verdict->results.at(0).outcome, Outcome::fail);
  EXPECT_TRUE(verdict->localised.at(0).culprits.empty());
  EXPECT_EQ(verdict->localised.at(0).state, SearchState::clear);
}

TEST(searches, a_bad_pair_is_named_as_a_pair) {
  const auto verdict = Fleet({kWhole}, 9, with_both("n2", "n7")).search().judged();
  ASSERT_EQ(verdict->localised.at(0).culprits.size(), 1U);
  EXPECT_EQ(verdict->localised[0].culprits[0].fault, Fault::pair);
  EXPECT_EQ(verdict->localised[0].culprits[0].nodes, (Names{"n2", "n7"}));
}

TEST(searches, a_group_that_meets_its_limit_is_not_searched) {
  const Fleet fleet({kWhole}, 8, [](const Names&) { return false; });
  EXPECT_TRUE(fleet.judged()->localised.empty());
}

TEST(searches, a_node_that_is_bad_alone_is_left_out_and_the_others_are_seen_to_be_good) {
  const auto verdict = Fleet({kAlone, kWhole}, 8, with("n3")).search().judged();
  ASSERT_EQ(verdict->localised.size(), 1U);
  EXPECT_EQ(verdict->localised[0].state, SearchState::clear);
  EXPECT_EQ(verdict->localised[0].excluded, Names{"n3"});
  EXPECT_EQ(verdict->localised[0].tests.size(), 1U);
  EXPECT_EQ(verdict->localised[0].tests[0].nodes, 7U);
}

TEST(searches, groups_without_a_common_node_are_searched_side_by_side_and_the_whole_after_them) {
  Fleet fleet({kByRack, kWhole}, 12, [](const Names& nodes) { return holds(nodes, "n3") || holds(nodes, "n8"); });
  const Searches searches(fleet.plan, fleet.judged()->results, fleet.journal, fleet.reader());
  std::set<std::string> steps;
  for (const auto& test : searches.open()) steps.insert(test.step.id.substr(0, test.step.id.find(".t")));
  EXPECT_EQ(steps, (std::set<std::string>{"0001-fabric-rack.odd", "0002-fabric-rack.even"}));
  const auto verdict = fleet.search().judged();
  ASSERT_TRUE(verdict) << verdict.error().text();
  ASSERT_EQ(verdict->localised.size(), 3U);
  EXPECT_EQ(verdict->localised[0].culprits.at(0).nodes, Names{"n3"});
  EXPECT_EQ(verdict->localised[1].culprits.at(0).nodes, Names{"n8"});
  EXPECT_EQ(verdict->localised[2].state, SearchState::clear);
  EXPECT_EQ(verdict->localised[2].excluded, (Names{"n3", "n8"}));
}

TEST(searches, a_limit_of_the_fleet_is_held_against_the_tests_too) {
  Fleet fleet({kOfFleet}, 16, with("n3"));
  for (std::size_t i = 0; i < fleet.plan.site.nodes.size(); ++i)
    fleet.plan.site.nodes[i].rack = "k" + std::to_string(i / 4);
  fleet.plan = *plan::make_plan(fleet.plan.profile, fleet.plan.site, fixture::programs(), {});
  fleet.journal.attempts = {};
  for (const auto& step : fleet.plan.steps) fleet.make(step, "");
  const auto verdict = fleet.search().judged();
  ASSERT_EQ(verdict->localised.size(), 1U);
  EXPECT_EQ(verdict->localised[0].culprits.at(0).nodes, Names{"n3"});
}

TEST(searches, a_sum_over_nodes_is_promised_to_fewer_of_them_in_proportion) {
  constexpr const char* kGrowing =
      R"({"probe": "fabric", "scope": "group", "by": "growing", "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group_by_nodes"}})";
  const auto verdict = Fleet({kGrowing}, 8, with("n7"), true).search().judged();
  ASSERT_TRUE(verdict) << verdict.error().text();
  ASSERT_EQ(verdict->localised.size(), 1U);
  EXPECT_EQ(verdict->localised[0].state, SearchState::found) << verdict->localised[0].reason;
  ASSERT_EQ(verdict->localised[0].culprits.size(), 1U);
  EXPECT_EQ(verdict->localised[0].culprits[0].nodes, Names{"n7"});
}

TEST(searches, a_killed_search_goes_on_where_it_was_and_ends_the_same) {
  const auto whole = Fleet({kWhole}, 16, with("n11")).search().judged();
  ASSERT_GT(whole->localised.at(0).tests.size(), 3U);
  for (std::size_t most = 0; most < whole->localised[0].tests.size(); ++most) {
    Fleet fleet({kWhole}, 16, with("n11"));
    fleet.search(most);
    const auto halved = fleet.judged();
    ASSERT_TRUE(halved) << halved.error().text();
    EXPECT_EQ(halved->localised.at(0).state, SearchState::open);
    EXPECT_EQ(halved->results.at(0).outcome, Outcome::fail);
    // What the runner does when it goes on: tests that the journal holds are not made again.
    Searches searches(fleet.plan, halved->results, fleet.journal, fleet.reader());
    for (auto open = searches.open(); !open.empty(); open = searches.open()) {
      for (const auto& test : open) {
        if (fleet.journal.attempts.of(test.step.id).empty()) fleet.make(test.step, test.test.purpose);
        Journal part;
        part.attempts = {fleet.journal.attempts.of(test.step.id).back()};
        part.node_facts = fleet.journal.node_facts;
        searches.take(test.step.id, *searches.shown(test, part, fleet.reader()));
      }
    }
    fleet.journal.localising = true;
    EXPECT_EQ(verdict_text(*fleet.judged()), verdict_text(*whole)) << most;
  }
}

TEST(searches, an_interrupted_test_is_made_again_and_is_no_retest) {
  Fleet fleet({kWhole}, 8, with("n3"));
  fleet.search(1);
  Attempt again = fleet.journal.attempts.back();
  fleet.journal.attempts.change_last([](Attempt& first) {
    first.outcome = AttemptOutcome::interrupted;
    first.evidence.clear();
  });
  again.number = 2;
  fleet.journal.attempts.push_back(again);
  EXPECT_EQ(refusal(fleet), "accepted");
}

TEST(searches, a_probe_that_cannot_be_run_on_so_few_nodes_ends_the_search_with_its_reason) {
  Fleet fleet({kWhole}, 8, with("n3"));
  Searches searches(fleet.plan, fleet.judged()->results, fleet.journal, fleet.reader());
  const auto open = searches.open();
  ASSERT_FALSE(open.empty());
  for (const auto& test : open)
    searches.take(test.step.id,
                  {.reading = {.broken = true, .shares = {}}, .unusable = true, .reason = "it needs eight"});
  EXPECT_TRUE(searches.open().empty());
  EXPECT_EQ(searches.found().at(0).state, SearchState::not_searched);
  EXPECT_NE(searches.found()[0].reason.find("it needs eight"), std::string::npos) << searches.found()[0].reason;
}

TEST(searches, a_step_killed_at_its_deadline_names_no_node_and_is_searched) {
  Fleet fleet({kWhole}, 8, with("n3"));
  fleet.journal.attempts.change_last([](Attempt& last) { last.outcome = AttemptOutcome::deadline; });
  EXPECT_FALSE(Searches(fleet.plan, fleet.judged()->results, fleet.journal, fleet.reader()).open().empty());
}

TEST(searches_refused, a_test_that_its_search_would_not_have_asked_for) {
  Fleet fleet({kWhole}, 8, with("n3"));
  fleet.search();
  ASSERT_EQ(refusal(fleet), "accepted");
  Fleet other_nodes = fleet;
  other_nodes.journal.attempts.change_last([](Attempt& last) { last.nodes.back() = "n4"; });
  EXPECT_NE(refusal(other_nodes).find("which its search would not have asked for"), std::string::npos)
      << refusal(other_nodes);
  Fleet other_purpose = fleet;
  other_purpose.journal.attempts.change_last([](Attempt& last) { last.purpose = "luck"; });
  EXPECT_NE(refusal(other_purpose).find("which its search would not have asked for"), std::string::npos);
  Fleet one_more = fleet;
  one_more.journal.attempts.push_back(one_more.journal.attempts.back());
  one_more.journal.attempts.change_last([](Attempt& last) { last.step = "0001-fabric-cluster.t099"; });
  EXPECT_NE(refusal(one_more).find("0001-fabric-cluster.t099, which its search would not have asked for"),
            std::string::npos);
  Fleet without_the_first = fleet;
  without_the_first.journal.attempts = {};
  for (const auto& attempt : fleet.journal.attempts)
    if (!attempt.step.ends_with(".t001")) without_the_first.journal.attempts.push_back(attempt);
  EXPECT_NE(refusal(without_the_first).find("which its search would not have asked for"), std::string::npos);
}

TEST(searches_refused, a_test_that_was_made_until_it_pleased) {
  Fleet fleet({kWhole}, 8, with("n3"));
  fleet.search();
  fleet.journal.attempts.push_back(fleet.journal.attempts.back());
  fleet.journal.attempts.change_last([](Attempt& last) { last.number = 2; });
  EXPECT_NE(refusal(fleet).find(" twice"), std::string::npos) << refusal(fleet);
}

TEST(searches_refused, tests_where_no_search_was_planned) {
  Fleet fleet({kWhole}, 8, with("n3"));
  fleet.search();
  fleet.plan.searches.clear();
  EXPECT_NE(refusal(fleet).find("which its search would not have asked for"), std::string::npos);
}

TEST(planned_searches, a_budget_is_frozen_for_each_group_and_two_nodes_have_none) {
  const plan::Plan plan =
      *plan::make_plan(fixture::profile({kByRack, kWhole, kAlone, kPairs}), fixture::site(5), fixture::programs(), {});
  ASSERT_EQ(plan.searches.size(), 3U);
  EXPECT_EQ(plan.searches[0].budget, plan::budget_for(3));
  EXPECT_EQ(plan.searches[1].budget.most, 0U);
  EXPECT_EQ(plan.searches[1].reason, "a group of two nodes cannot be split further");
  EXPECT_EQ(plan.searches[2].budget, plan::budget_for(5));
  EXPECT_EQ(plan::read_plan(plan::plan_text(plan), "p")->searches.size(), 3U);
}

TEST(planned_searches, a_rehearsal_has_none_and_neither_has_who_wants_none) {
  EXPECT_TRUE(plan::make_plan(fixture::profile({kWhole}), fixture::site(5), fixture::programs(), {.quick = true})
                  ->searches.empty());
  const plan::Plan without =
      *plan::make_plan(fixture::profile({kWhole}), fixture::site(5), fixture::programs(), {.localise = false});
  EXPECT_TRUE(without.searches.empty());
  EXPECT_FALSE(plan::read_plan(plan::plan_text(without), "p")->localise);
}

TEST(planned_searches, a_budget_that_was_edited_is_refused) {
  std::string text =
      plan::plan_text(*plan::make_plan(fixture::profile({kWhole}), fixture::site(5), fixture::programs(), {}));
  const std::string most = "\"most\": " + std::to_string(plan::budget_for(5).most);
  ASSERT_NE(text.find(most), std::string::npos);
  text.replace(text.find(most), most.size(), "\"most\": 999");
  EXPECT_FALSE(plan::read_plan(text, "p"));
}

TEST(verdict, who_was_found_is_written_and_read_back) {
  const auto verdict = Fleet({kWhole, kPairs}, 6, with("n3")).search().judged();
  const std::string text = verdict_text(*verdict);
  const auto again = read_verdict(text, "verdict.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(verdict_text(*again), text);
  EXPECT_EQ(again->localised.size(), 2U);
}

}  // namespace assay::judge
