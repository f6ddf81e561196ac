// The journal's lines are closed, and their times are those of one run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/overall/conclude.h"
#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/fixture.h"

namespace assay::judge {
namespace {

constexpr const char* kBegin =
    R"({"schema":"assay.journal/1","time":"2026-01-05T06:30:00.000Z","kind":"run_begin","run_id":"i","plan_sha256":"d"})"
    "\n";

std::string line(const std::string& time, const std::string& rest) {
  return R"({"time":"2026-01-05T)" + time + R"(Z",)" + rest + "}\n";
}

/// What the reader says of kBegin and `lines`.
std::string said(const std::string& lines, const std::string& begin = kBegin) {
  const auto journal = read_journal(begin + lines, "j");
  return journal ? "read" : journal.error().where + ": " + journal.error().what;
}

const std::string kEnd = R"("kind":"run_end")";
const std::string kDown = R"("kind":"node_down","node":"n1","reason":"away")";
const std::string kResume = R"("kind":"run_resume")";

}  // namespace

TEST(JournalGuard, a_member_that_is_not_of_its_kind_is_refused) {
  EXPECT_EQ(said(line("06:30:01.000", R"("kind":"run_end","waived":true)")),
            "j: line 2: a run_end has no member 'waived'");
  EXPECT_EQ(said(line("06:30:01.000", R"("kind":"node_up","node":"n","facts":{"any":1},"reason":"")")),
            "j: line 2: a node_up has no member 'reason'");
  EXPECT_EQ(
      said(
          "",
          R"({"schema":"assay.journal/1","time":"2026-01-05T06:30:00.000Z","kind":"run_begin","run_id":"i","plan_sha256":"d","note":1})"
          "\n"),
      "j: line 1: a run_begin has no member 'note'");
  EXPECT_EQ(said(line("06:30:01.000", R"("schema":"assay.journal/1",)" + kEnd)),
            "j: line 2: a run_end has no member 'schema'");
  const std::string begin = R"("kind":"attempt_begin","step":"s","attempt":1,"node":"n")";
  EXPECT_EQ(said(line("06:30:01.000", begin) +
                 line("06:30:02.000", R"("kind":"attempt_end","step":"s","attempt":1,"outcome":"exited","reason":"",)"
                                      R"("evidence":[{"path":"p","sha256":"x","bytes":1,"signed":true}])")),
            "j: line 3: a file of evidence has no member 'signed'");
}

TEST(JournalGuard, a_byte_order_mark_before_a_line_is_refused) {
  EXPECT_EQ(said("\xEF\xBB\xBF" + line("06:30:01.000", kEnd)),
            "j: line 2: line 1, column 1: begins with a byte order mark");
}

TEST(JournalGuard, a_time_that_is_no_time_is_refused) {
  EXPECT_EQ(said(R"({"time":"yesterday","kind":"run_end"})"
                 "\n"),
            "j: line 2: 'time' is not UTC with milliseconds: 'yesterday'");
  EXPECT_EQ(said(R"({"time":"2026-02-30T06:30:00.000Z","kind":"run_end"})"
                 "\n"),
            "j: line 2: 'time' is not UTC with milliseconds: '2026-02-30T06:30:00.000Z'");
  EXPECT_EQ(said(R"({"time":7,"kind":"run_end"})"
                 "\n"),
            "j: line 2: 'time' is missing or not a text");
}

TEST(JournalGuard, times_that_go_back_without_a_clock_jump_are_refused) {
  EXPECT_EQ(said(line("06:29:59.500", kEnd)), "read") << "a clock may be set by less than a second unseen";
  EXPECT_EQ(
      said(line("06:29:58.500", kEnd)),
      "j: line 2: the time goes back from 2026-01-05T06:30:00.000Z to 2026-01-05T06:29:58.500Z without a clock_jump");
  EXPECT_EQ(
      said(R"({"time":"1970-01-05T06:30:00.000Z","kind":"run_end"})"
           "\n"),
      "j: line 2: the time goes back from 2026-01-05T06:30:00.000Z to 1970-01-05T06:30:00.000Z without a clock_jump");
  EXPECT_EQ(said(line("06:00:00.000", R"("kind":"clock_jump","by_s":-1860)") + line("06:00:00.000", kEnd)), "read");
  EXPECT_EQ(said(line("06:00:00.000", R"("kind":"clock_jump","by_s":-60)") + line("06:00:00.000", kEnd)),
            "j: line 2: the time goes from 2026-01-05T06:30:00.000Z to 2026-01-05T06:00:00.000Z, which a jump by -60 s "
            "does not explain");
  EXPECT_EQ(said(line("06:00:00.000", R"("kind":"clock_jump","by_s":"much")")), "j: line 2: 'by_s' is not a number");
}

TEST(JournalGuard, a_resumption_by_another_clock_is_a_clock_jump_of_the_run) {
  const auto journal = read_journal(
      kBegin + line("06:40:00.000", kDown) + line("06:00:00.000", kResume) + line("06:10:00.000", kEnd), "j");
  ASSERT_TRUE(journal) << journal.error().text();
  ASSERT_EQ(journal->clock_jumps.size(), 1U);
  EXPECT_EQ(journal->clock_jumps[0].by_s, -2400);
  EXPECT_EQ(journal->last, "2026-01-05T06:10:00.000Z");
}

TEST(RecordTimes, a_record_of_another_time_than_its_attempt_is_a_deviation) {
  fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  std::string record = run.record("n1", std::vector<double>(10, 110.0));
  // Every line of the record is given a year in which nothing of this run happened.
  for (auto at = record.find("\"time\":\"20"); at != std::string::npos; at = record.find("\"time\":\"20", at + 1))
    record.replace(at + 8, 4, "2019");
  run.attempt(0, "exited", record);
  run.journal.attempts.change_last([](Attempt& last) {
    last.begin = "2026-01-05T06:30:00.000Z";
    last.end = "2026-01-05T06:31:00.000Z";
  });
  const Verdict verdict = judge(run.plan, "digest", run.journal, run.reader());
  ASSERT_EQ(verdict.deviations.size(), 1U);
  EXPECT_TRUE(verdict.deviations[0].what.starts_with("Node n1: its records are dated up to "))
      << verdict.deviations[0].what;
  EXPECT_NE(verdict.deviations[0].what.find(" s before their attempts: its clock differs"), std::string::npos);
}

TEST(RecordTimes, clocks_may_differ_by_five_minutes) {
  const Attempt attempt{.begin = "2026-01-05T06:30:00.000Z", .end = "2026-01-05T06:31:00.000Z"};
  const auto outside = [&](const char* first, const char* last) {
    return outside_of_attempt_s({.first = first, .last = last}, attempt);
  };
  EXPECT_EQ(outside("2026-01-05T06:30:00.000Z", "2026-01-05T06:31:00.000Z"), 0);
  EXPECT_EQ(outside("2026-01-05T06:25:00.000Z", "2026-01-05T06:26:00.000Z"), -kMostClockDifference_s);
  EXPECT_EQ(outside("2026-01-05T06:36:00.000Z", "2026-01-05T06:41:00.000Z"), 600);
}

}  // namespace assay::judge
