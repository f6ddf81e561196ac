// What a run tells while it goes on, in plain lines.
#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "orchestrator/run/progress.h"
#include "tests/unit/fixture.h"

namespace assay::run {
namespace {

plan::Plan plan_of(int nodes) {
  return *plan::make_plan(fixture::profile({R"({"limit": {"at_least": 100, "unit": "B/s"}})"}), fixture::site(nodes),
                          fixture::programs(), {});
}

/// What `tell` prints on stderr.
template <typename Tell>
std::string said(const plan::Plan& plan, Tell tell, Progress::Mode mode = Progress::Mode::plain) {
  testing::internal::CaptureStderr();
  {
    Progress progress(plan, mode);
    tell(progress);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, a_resumed_run_ends_with_every_attempt_counted) {
  const plan::Plan plan = plan_of(2);
  const std::string text = said(plan, [&](Progress& progress) {
    progress.step_kept(plan.steps[0], 1, 0);
    progress.step_begin(plan.steps[1], 2);  // the first attempt was interrupted
    progress.step_end(plan.steps[1], 2, AttemptOutcome::exited, "");
  });
  EXPECT_NE(text.find("[  2/2] 0002-disk-n2 (attempt 2) done after"), std::string::npos) << text;
}

TEST(Progress, the_time_left_is_no_less_than_that_of_the_step_that_begins_by_what_was_seen_of_it) {
  const plan::Plan plan = plan_of(2);
  const std::string text = said(plan, [&](Progress& progress) {
    progress.step_begin(plan.steps[0], 1);
    progress.step_kept(plan.steps[0], 1, 0, {110});
    progress.step_begin(plan.steps[1], 1);
  });
  EXPECT_NE(text.find("0001-disk-n1 begins, 0:10 left"), std::string::npos) << text;
  EXPECT_NE(text.find("0002-disk-n2 begins, 1:50 left"), std::string::npos) << text;
}

TEST(Progress, a_step_that_ends_tells_what_it_measured_and_one_that_breaks_why) {
  const plan::Plan plan = plan_of(2);
  const std::string text = said(plan, [&](Progress& progress) {
    progress.step_end(plan.steps[0], 1, AttemptOutcome::exited, "", {.text = "r0 110 B/s pass"});
    progress.step_end(plan.steps[1], 1, AttemptOutcome::crashed, "killed by signal 11");
  });
  EXPECT_NE(text.find("0001-disk-n1 done after"), std::string::npos) << text;
  EXPECT_NE(text.find(": r0 110 B/s pass\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0002-disk-n2 crashed after"), std::string::npos) << text;
}

TEST(Progress, what_could_not_be_judged_for_an_error_counts_as_failed_everywhere) {
  const plan::Plan plan = plan_of(2);
  const std::string path = testing::TempDir() + "/board-of-errors.html";
  const std::string text = said(plan, [&](Progress& progress) {
    ASSERT_FALSE(progress.show_on(path));
    progress.step_end(plan.steps[0], 1, AttemptOutcome::exited, "", {.text = "r0: one machine twice", .error = true});
    EXPECT_EQ(progress.view().failures, std::vector<std::string>{"0001-disk-n1 error: r0: one machine twice"});
    EXPECT_EQ(progress.view().nodes.at(0).broken, 1U);
  });
  EXPECT_NE(text.find("0001-disk-n1 error after"), std::string::npos) << text;
  EXPECT_EQ(text.find(" done "), std::string::npos) << text;
  EXPECT_EQ(read_file(path)->find("nothing so far"), std::string::npos);
  std::remove(path.c_str());
}

TEST(Progress, many_failures_of_one_cause_are_one_line) {
  const plan::Plan plan = plan_of(4);
  said(plan, [&](Progress& progress) {
    for (const auto& step : plan.steps)
      progress.step_end(step, 1, AttemptOutcome::exited, "", {.text = "r0: no boot id", .error = true});
    progress.step_end(plan.steps[1], 2, AttemptOutcome::crashed, "killed by signal 11");
    EXPECT_EQ(progress.view().failures, (std::vector<std::string>{"0002-disk-n2 crashed: killed by signal 11",
                                                                  "4 times, last 0004-disk-n4 error: r0: no boot id"}));
  });
}

/// What stands on the terminal before the display is taken away: the text after the last erasure but one.
std::string last_block(const std::string& text) {
  const std::string erasure = "\x1b[J";
  const auto end = text.rfind(erasure), begin = text.rfind(erasure, end - 1);
  return text.substr(begin + erasure.size(), text.rfind("\x1b[", end) - begin - erasure.size());
}

/// A step begins on every node; it breaks on the second and misses its limit on the third.
void tell_of_a_fleet(const plan::Plan& plan, Progress& progress) {
  for (const auto& step : plan.steps) progress.step_begin(step, 1);
  progress.step_end(plan.steps[1], 1, AttemptOutcome::crashed, "killed by signal 11");
  progress.step_end(plan.steps[2], 1, AttemptOutcome::exited, "", {.text = "r0 90 B/s fail", .missed = true});
  progress.node("n4", "connection lost");
  progress.tick();
}

TEST(LiveDisplay, of_eight_nodes_has_a_line_for_each_with_its_step_and_its_failures) {
  const plan::Plan plan = plan_of(8);
  const std::string block = last_block(said(
      plan, [&](Progress& progress) { tell_of_a_fleet(plan, progress); }, Progress::Mode::terminal));
  EXPECT_EQ(std::ranges::count(block, '\n'), 8 + 3) << block;
  EXPECT_NE(block.find("  8 nodes: 5 at work, 2 between steps, 0 not started, 1 lost\n"), std::string::npos) << block;
  EXPECT_NE(block.find("  failed on 3: n2, n3, n4\n"), std::string::npos) << block;
  EXPECT_NE(block.find("between steps  1 failed\n"), std::string::npos) << block;
  EXPECT_NE(block.find("  2 of 8 attempts, "), std::string::npos) << block;
  EXPECT_NE(block.find(" left\n"), std::string::npos) << block;
}

TEST(LiveDisplay, of_512_nodes_fits_a_screen_and_counts_them_all) {
  const plan::Plan plan = plan_of(512);
  const std::string block = last_block(said(
      plan, [&](Progress& progress) { tell_of_a_fleet(plan, progress); }, Progress::Mode::terminal));
  EXPECT_LE(std::ranges::count(block, '\n'), 22) << block;
  EXPECT_NE(block.find("  … and 496 more nodes\n"), std::string::npos) << block;
  EXPECT_NE(block.find("  512 nodes: 509 at work, 2 between steps, 0 not started, 1 lost\n"), std::string::npos);
}

TEST(LiveDisplay, without_a_terminal_there_is_one_line_an_event_and_no_control_character) {
  const plan::Plan plan = plan_of(8);
  const std::string text = said(plan, [&](Progress& progress) { tell_of_a_fleet(plan, progress); });
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 8 + 3) << text;
}

TEST(Board, shows_every_node_what_failed_and_escapes_what_nodes_say) {
  const plan::Plan plan = plan_of(512);
  const std::string path = testing::TempDir() + "/board.html";
  said(plan, [&](Progress& progress) {
    ASSERT_FALSE(progress.show_on(path));
    EXPECT_NE(read_file(path)->find("http-equiv=\"refresh\""), std::string::npos);
    EXPECT_NE(read_file(path)->find("@media (prefers-color-scheme: dark)"), std::string::npos);
    tell_of_a_fleet(plan, progress);
    progress.node("n5", "<script>alert(1)</script>");
  });
  const std::string page = *read_file(path);
  EXPECT_EQ(page.find("http-equiv=\"refresh\""), std::string::npos) << "over: nothing to come back for";
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_NE(page.find("0002-disk-n2 crashed: killed by signal 11"), std::string::npos);
  EXPECT_NE(page.find("0003-disk-n3 done: r0 90 B/s fail"), std::string::npos);
  std::size_t squares = 0;
  for (auto at = page.find("<i class="); at != std::string::npos; at = page.find("<i class=", at + 1)) ++squares;
  EXPECT_EQ(squares, 512U);
  EXPECT_NE(page.find("… and 448 more nodes"), std::string::npos);
  std::remove(path.c_str());
}

TEST(Board, counts_the_cells_of_steps_that_are_over_once_however_often_they_are_judged) {
  const plan::Plan plan = plan_of(8);
  plan::Step test = plan.steps[0];
  test.id = "0001-disk-n1.t001";
  const std::string path = testing::TempDir() + "/board-of-cells.html";
  const auto cells = [](std::size_t passed, std::size_t failed, std::size_t open) {
    return StepWords{.missed = failed > 0, .cells = {.steps = 1, .passed = passed, .failed = failed, .open = open}};
  };
  const std::string block = last_block(said(
      plan,
      [&](Progress& progress) {
        ASSERT_FALSE(progress.show_on(path));
        EXPECT_EQ(read_file(path)->find("steps judged"), std::string::npos) << "none is over";
        progress.step_end(plan.steps[0], 1, AttemptOutcome::exited, "", {.text = "r0 90 B/s"});  // more are to come
        progress.step_end(plan.steps[0], 2, AttemptOutcome::exited, "", cells(1, 2, 0));
        progress.step_end(plan.steps[1], 1, AttemptOutcome::crashed, "killed by signal 11", cells(0, 0, 3));
        progress.step_kept(plan.steps[2], 2, 0, {}, cells(2, 1, 0));
        EXPECT_EQ(progress.view().cells.text(8), "3 of 8 steps judged: 3 required cells pass, 3 fail, 3 open");
        progress.second_stage({&plan.steps[0]});
        progress.step_end(plan.steps[0], 3, AttemptOutcome::exited, "", cells(3, 0, 0));
        progress.step_end(test, 1, AttemptOutcome::exited, "", cells(9, 9, 9));
      },
      Progress::Mode::terminal));
  const std::string counts = "3 of 8 steps judged: 5 required cells pass, 1 fail, 3 open";
  EXPECT_NE(block.find("  " + counts + "\n"), std::string::npos) << block;
  EXPECT_NE(block.find("  failed on 3: n1, n2, n3\n"), std::string::npos) << block;
  EXPECT_NE(read_file(path)->find("<p>" + counts + ". Each step is judged without the others"), std::string::npos);
  std::remove(path.c_str());
}

TEST(Board, a_page_that_cannot_be_written_is_refused_before_the_run) {
  const plan::Plan plan = plan_of(2);
  said(plan, [&](Progress& progress) {
    const auto problem = progress.show_on("/nowhere/board.html");
    ASSERT_TRUE(problem);
    EXPECT_NE(problem->text().find("cannot be written: No such file or directory"), std::string::npos);
    EXPECT_NE(problem->text().find("--board board.html"), std::string::npos);
  });
}

TEST(ClockText, has_hours_where_there_are_any) {
  EXPECT_EQ(clock_text(65), "1:05");
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(clock_text(-3), "0:00");
}

}  // namespace
}  // namespace assay::run
