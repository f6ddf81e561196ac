// Times that a probe declares as spent: an attempt that was shorter by the head's clock passes nothing.
#include <gtest/gtest.h>

#include "orchestrator/judge/cells/judge.h"
#include "tests/unit/fixture.h"

namespace assay::judge::spent_time_test {
namespace {

constexpr Parameter kTimes[] = {spent("window", "60s", "slopes"), spent("hold", "30s", "once steady", "1s", 2),
                                parameter("wait", "s", "60min", "at most")};
constexpr Metric kFigures[] = {higher("rate", "1/s", "work over time"), fault("mismatches", "wrong results"),
                               higher("load_share", "1", "of its time", Recorded::if_asked)};
constexpr ProbeSpec kBurnSpec{.name = "burn",
                              .measures = "A load.",
                              .method = "None.",
                              .source = "None.",
                              .parameters = kTimes,
                              .metrics = kFigures};

/// One attempt on one node that lasted `minutes`, with these figures; a rate of 10 is promised.
struct BurnRun : fixture::MemoryRun {
  BurnRun(const char* end, double rate, double mismatches, const std::map<std::string, double>& shares = {})
      : MemoryRun({R"({"limit": {"at_least": 1, "unit": "B/s"}})"}) {
    const auto description = *read_description(describe(kBurnSpec).dump(), "burn");
    const char* once = R"("repeat": {"n": 1, "attempts": 1, "more_attempts": 0}, "probe": "burn", )";
    const std::vector<std::string> promised = {
        std::string("{") + once + R"("metric": "rate", "statistic": "min", "limit": {"at_least": 10, "unit": "1/s"}})",
        std::string("{") + once +
            R"("metric": "mismatches", "statistic": "max", "limit": {"at_most": 0, "unit": "1"}})"};
    auto planned = plan::make_plan(
        fixture::profile(promised), fixture::site(1),
        {{.name = "burn", .sha256 = std::string(64, 'd'), .path = "/p/burn", .description = description}}, {});
    if (!planned) throw std::runtime_error(planned.error().text());
    plan = std::move(*planned);
    std::ostringstream out;
    Recorder recorder(
        out, kBurnSpec,
        {.probe = "burn", .revision = 1, .parameters = plan.steps.at(0).parameters, .host = {{"name", "n1"}}});
    recorder.measurement("rate", rate);
    recorder.measurement("mismatches", mismatches);
    for (const auto& [kind, share] : shares) recorder.measurement("load_share", share, {kind, "n1"});
    recorder.end({.status = Status::complete, .reason = ""});
    attempt(0, "exited", out.str());
    journal.attempts.change_last([&](Attempt& one) {
      one.begin = "2026-01-05T00:00:00.000Z";
      one.end = std::string("2026-01-05T") + end + "Z";
    });
  }
  [[nodiscard]] Result judged(std::size_t cell) const { return judge_cells(plan, journal, reader()).at(cell); }
};

TEST(spent_time, of_a_window_and_two_holds_is_demanded_of_the_attempt_by_the_clock_of_the_head) {
  EXPECT_EQ(BurnRun("00:02:00.000", 20, 0).judged(0).outcome, Outcome::pass);
  const Result early = BurnRun("00:01:50.000", 20, 0).judged(0);
  EXPECT_EQ(early.outcome, Outcome::error);
  EXPECT_NE(early.reason.find("the record is of 120 s under load, and the attempt lasted 110 s"), std::string::npos)
      << early.reason;
}

TEST(spent_time, that_a_fault_ended_leaves_the_fault_a_fail_and_passes_nothing_else) {
  const BurnRun run("00:00:40.000", 20, 3);
  EXPECT_EQ(run.judged(1).outcome, Outcome::fail);
  EXPECT_EQ(run.judged(0).outcome, Outcome::inconclusive);
  EXPECT_NE(run.judged(0).reason.find("A fault ended attempt 1 early: the record is of 120 s"), std::string::npos)
      << run.judged(0).reason;
  EXPECT_EQ(BurnRun("00:00:40.000", 5, 3).judged(0).outcome, Outcome::fail);
  EXPECT_EQ(BurnRun("00:02:00.000", 20, 3).judged(0).outcome, Outcome::pass);
}

TEST(spent_time, is_as_much_as_the_largest_load_share_says) {
  EXPECT_EQ(BurnRun("00:01:50.000", 20, 0, {{"node", 0.9}}).judged(0).outcome, Outcome::pass);
  EXPECT_EQ(BurnRun("00:01:00.000", 20, 0, {{"cpu", 0.01}, {"node", 1}}).judged(0).outcome, Outcome::error);
  EXPECT_EQ(BurnRun("00:01:00.000", 20, 3, {{"node", 1}}).judged(1).outcome, Outcome::error);
}

TEST(spent_time, that_was_a_part_of_what_was_asked_for_passes_nothing_where_no_requirement_judges_the_part) {
  const Result half = BurnRun("00:01:00.000", 20, 0, {{"node", 0.5}}).judged(0);
  EXPECT_EQ(half.outcome, Outcome::inconclusive);
  EXPECT_NE(half.reason.find("load_share of node n1 is 0.5, and no requirement judges it there."), std::string::npos)
      << half.reason;
}

}  // namespace
}  // namespace assay::judge::spent_time_test
