// What a page keeps of a run's samples: each where there are few subjects, the smallest and the largest where there are
// many.
#include "reports/page/content.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "reports/page/render.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::page {
namespace {

using simulate::Rehearsal;

ReportContent content_of(Rehearsal fleet) {
  const auto evidence = simulate::simulated_evidence(fleet.plan, fleet.run.journal);
  return report_content(
      {.run = {.plan = std::move(fleet.plan), .plan_sha256 = "", .journal = std::move(fleet.run.journal)},
       .verdict = std::move(fleet.verdict),
       .verdict_sha256 = "",
       .journal_sha256 = ""},
      evidence, "");
}

TEST(ReportContent, has_each_sample_of_few_subjects) {
  const auto content = content_of(Rehearsal(simulate::plan_of({simulate::kAlone}, {.nodes = 4})));
  for (const auto& result : content.verdict.results) {
    const auto samples = content.samples(result);
    EXPECT_EQ(samples.size(), result.samples);
    EXPECT_GT(samples.size(), 2U);
  }
}

TEST(ReportContent, has_the_range_of_many_subjects_whether_their_records_are_kept_or_not) {
  const auto content = content_of(Rehearsal(simulate::plan_of({simulate::kAlone}, {.nodes = 200})));
  EXPECT_TRUE(content.records.contains(content.verdict.results.front().step));
  EXPECT_FALSE(content.records.contains(content.verdict.results.back().step));
  for (const auto& result : content.verdict.results) {
    const auto samples = content.samples(result);
    ASSERT_EQ(samples.size(), 2U) << result.step;
    EXPECT_LT(samples.front(), *result.value);
    EXPECT_GT(samples.back(), *result.value);
  }
}

TEST(ReportContent, reads_no_record_again_that_the_verdict_has_read) {
  Rehearsal fleet(simulate::plan_of({simulate::kAlone, simulate::kFleet}, {.nodes = 20}));
  const auto records = fleet.run.records;
  std::size_t all = 0;
  fleet.run.journal.each_file([&](const auto&) { ++all; });
  const auto content = report_content(
      {.run = {.plan = std::move(fleet.plan), .plan_sha256 = "", .journal = std::move(fleet.run.journal)},
       .verdict = std::move(fleet.verdict),
       .verdict_sha256 = "",
       .journal_sha256 = ""},
      {nullptr, records}, "");
  EXPECT_FALSE(content.records.empty());
  EXPECT_EQ(records.parsed(), all);
}

TEST(ReportContent, shows_the_next_step_of_an_incomplete_run_and_no_row_for_what_a_machine_does_not_report) {
  auto content = content_of(Rehearsal(simulate::plan_of({simulate::kAlone, simulate::kFleet}, {.nodes = 8})));
  content.verdict.simulated = false;
  auto& disturbed = content.verdict.results.front();
  disturbed.outcome = judge::Outcome::inconclusive;
  disturbed.set_aside = {{.attempt = 1, .reason = "busy"}};
  for (auto& result : content.verdict.results) {
    if (result.requirement == disturbed.requirement) continue;
    result.outcome = judge::Outcome::not_measured;
    result.required = false;
    result.unchecked = true;
    result.reason = "Not checked: no figure";
  }
  const std::string html = render_html(content);
  const std::string action = html.substr(0, html.find("</section>"));
  EXPECT_NE(action.find("<p><strong>Next:</strong> stop other programs on "), std::string::npos) << action;
  EXPECT_EQ(action.find("Not checked: "), std::string::npos) << action;
  EXPECT_NE(html.find("Not checked: "), std::string::npos) << "the results have it";
}

}  // namespace
}  // namespace assay::page
