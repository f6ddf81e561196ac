// What the page says of risks that two parties agreed on.
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/plan.h"
#include "reports/page/sections.h"
#include "tests/unit/figures/chart_fixture.h"
#include "tests/unit/soak.h"

namespace assay::page {

TEST(AgreedRiskPage, has_both_parties_risks_and_the_curve_of_the_plan) {
  const char* const rate =
      R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 3, "more_attempts": 4}})";
  const auto agreed = plan::read_agreed_risk("beyond=4,vendor=5,short=2,buyer=5,bad=10", "--risk");
  ASSERT_TRUE(agreed) << agreed.error().text();
  auto plan =
      plan::make_plan(fixture::profile({rate}), fixture::site(20), fixture::programs(), {.agreed_risk = *agreed});
  ASSERT_TRUE(plan) << plan.error().text();
  const std::string tables = agreed_risk_tables(*plan);
  for (const char* part :
       {"one with 2 of 20 nodes 2 % short in one rate is accepted with", "(agreed: at most 5 %)", "<td>+4 %</td>",
        "<td>-5 %</td><td>&lt; 0.001 %</td>", "Nodes that are 2 % short in one rate"})
    EXPECT_TRUE(fixture::contains(tables, part)) << part << "\n" << tables;
  plan->agreed_risk.reset();
  EXPECT_EQ(agreed_risk_tables(*plan), "");
}

TEST(StabilityPage, has_the_path_of_the_interruptions_along_the_boundaries) {
  fixture::SoakRun run;
  EXPECT_TRUE(fixture::contains(stability_tables(run.plan, {}), "<td>24 h</td><td>0</td><td>3</td><td></td><td></td>"));
  for (const int one : {1, 0, 0, 0}) run.add_all(one);
  const auto verdict = judge::judge(run.plan, "digest", run.journal, run.reader());
  const std::string tables = stability_tables(run.plan, verdict.results);
  for (const char* part :
       {"<td>24 h</td><td>0</td><td>3</td><td>1</td><td></td>", "<td>1</td><td>accepted</td>", "Wald's lines"})
    EXPECT_TRUE(fixture::contains(tables, part)) << part << "\n" << tables;
  EXPECT_TRUE(fixture::contains(stability_outcome(run.plan, verdict.results), "Outcome: pass: 1 interruptions in"));
  run.plan.agreed_stability.reset();
  EXPECT_EQ(stability_tables(run.plan, verdict.results), "");
}

}  // namespace assay::page
