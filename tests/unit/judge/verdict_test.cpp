// verdict.json, both ways, in both formats that are read.
#include "orchestrator/judge/verdict.h"

#include <gtest/gtest.h>

#include "orchestrator/judge/overall/ranking.h"

namespace assay::judge {
namespace {

/// As assay.verdict/2 was written: what this version has in fields, its texts begin with.
constexpr std::string_view kOld = R"({
 "counts": {
  "not_measured": 1
 },
 "deviations": [
  {
   "step": "",
   "what": "Quick parameters were used: a rehearsal, which accepts nothing."
  },
  {
   "step": "0001-disk-n1",
   "what": "Attempt 1 on n1: crashed: killed by signal 11"
  },
  {
   "step": "",
   "what": "Not checked, because the machine does not tell: r0, on 1 of 1 subjects."
  },
  {
   "step": "",
   "what": "Relative only: 1 of 1 requirements, first r0."
  }
 ],
 "fleet": {
  "accepted": 0,
  "incomplete": 0,
  "rejected": 0
 },
 "localised": [],
 "nodes": [],
 "overall": "incomplete",
 "plan_sha256": "",
 "profile": "p",
 "reason": "Nothing was judged.",
 "results": [
  {
   "attempts": 1,
   "between_steps": 0,
   "conditions": [],
   "each": [],
   "evidence": [],
   "findings": [],
   "node": "n1",
   "outcome": "not_measured",
   "reason": "Not checked: the link's rate is not reported.",
   "required": false,
   "requirement": "r0",
   "samples": 0,
   "set_aside": [],
   "step": "0001-disk-n1",
   "subject": {
    "node": "n1"
   },
   "unit": "B/s"
  }
 ],
 "run_id": "",
 "schema": "assay.verdict/2",
 "site": "s"
}
)";

/// The same as this version writes it.
Verdict judged() {
  Result cell;
  cell.requirement = "r0";
  cell.subject = {"node", "n1"};
  cell.node = "n1";
  cell.step = "0001-disk-n1";
  cell.required = false;
  cell.unchecked = true;
  cell.reason = "Not checked: the link's rate is not reported.";
  cell.unit = "B/s";
  cell.attempts = 1;
  Verdict verdict;
  verdict.profile = "p";
  verdict.site = "s";
  verdict.reason = "Nothing was judged.";
  verdict.results.push_back(cell);
  verdict.counts["not_measured"] = 1;
  verdict.deviations = {
      {.what = "Quick parameters were used: a rehearsal, which accepts nothing.", .step = ""},
      {.what = "Attempt 1 on n1: crashed: killed by signal 11",
       .step = "0001-disk-n1",
       .kind = DeviationKind::attempt,
       .said = "crashed: killed by signal 11"},
      {.what = "Not checked, because the machine does not tell: r0, on 1 of 1 subjects.",
       .step = "",
       .kind = DeviationKind::not_checked},
      {.what = "Relative only: 1 of 1 requirements, first r0.", .step = "", .kind = DeviationKind::relative_only}};
  return verdict;
}

TEST(VerdictFormat, of_a_stored_verdict_is_that_of_its_schema) {
  EXPECT_EQ(format_of(kOld), VerdictFormat::old);
  EXPECT_EQ(format_of(verdict_text(judged())), VerdictFormat::current);
  EXPECT_EQ(format_of("{}"), VerdictFormat::current);
}

TEST(VerdictFormat, a_verdict_is_written_in_the_earlier_form_byte_for_byte) {
  EXPECT_EQ(verdict_text(judged(), VerdictFormat::old), kOld);
  EXPECT_TRUE(is_text_of(judged(), kOld, VerdictFormat::old));
  EXPECT_FALSE(is_text_of(judged(), kOld));
}

TEST(VerdictFormat, the_texts_of_a_stored_verdict_of_the_earlier_form_give_its_fields) {
  const auto read = read_verdict(kOld, "verdict.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(verdict_text(*read), verdict_text(judged()));
}

TEST(VerdictFormat, knees_are_of_the_latest_form_alone) {
  Verdict verdict = judged();
  const std::string without = verdict_text(verdict, VerdictFormat::without_knees);
  EXPECT_EQ(format_of(without), VerdictFormat::without_knees);
  EXPECT_TRUE(read_verdict(without, "verdict.json"));
  verdict.knees.push_back({.requirement = "r0", .state = KneeState::found, .kept = 24, .lost = 25, .reason = "Knee."});
  EXPECT_EQ(verdict_text(verdict, VerdictFormat::without_knees), without);
  const auto read = read_verdict(verdict_text(verdict), "verdict.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->knees.at(0).kept, 24U);
}

TEST(VerdictFormat, what_is_unchecked_comes_back_whatever_the_reason_says) {
  Verdict verdict = judged();
  verdict.results.front().reason = "The port does not report its rate.";
  verdict.deviations.at(2).what = "r0 was judged on no subject.";
  const auto read = read_verdict(verdict_text(verdict), "verdict.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->results.front().unchecked);
  EXPECT_EQ(read->deviations.at(2).kind, DeviationKind::not_checked);
}

TEST(VerdictFormat, a_format_that_is_not_known_is_refused) {
  std::string text(kOld);
  text.replace(text.find("assay.verdict/2"), 15, "assay.verdict/9");
  const auto read = read_verdict(text, "verdict.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "is not an assay.verdict/4");
}

TEST(ShownDeviations, are_at_most_three_of_one_step_and_the_others_are_counted_by_step) {
  std::vector<std::string> steps(20, "0001-disk-n1");
  steps.insert(steps.begin(), "");
  steps.insert(steps.end(), {"0002-disk-n2", "0002-disk-n2", "0002-disk-n2", "0002-disk-n2", ""});
  const auto some = shown_deviations(steps, 6);
  EXPECT_EQ(some.shown, (std::vector<std::size_t>{0, 1, 2, 3, 21, 22}));
  EXPECT_EQ(some.more, (std::map<std::string, std::size_t>{{"0001-disk-n1", 17}, {"0002-disk-n2", 1}}));
  EXPECT_EQ(some.others, 2U);
  EXPECT_EQ(shown_deviations(steps, 100).shown.back(), steps.size() - 1);
  EXPECT_EQ(shown_deviations({"", "", "", ""}, 5).shown.size(), 4U);
}

}  // namespace
}  // namespace assay::judge
