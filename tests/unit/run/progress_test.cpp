// What a run tells while it goes on, in plain lines.
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
std::string said(const plan::Plan& plan, Tell tell) {
  testing::internal::CaptureStderr();
  {
    Progress progress(plan, Progress::Mode::plain);
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

TEST(Progress, a_step_that_ends_tells_what_it_measured_and_one_that_breaks_why) {
  const plan::Plan plan = plan_of(2);
  const std::string text = said(plan, [&](Progress& progress) {
    progress.step_end(plan.steps[0], 1, AttemptOutcome::exited, "", "r0 110 B/s pass");
    progress.step_end(plan.steps[1], 1, AttemptOutcome::crashed, "killed by signal 11");
  });
  EXPECT_NE(text.find("0001-disk-n1 done after"), std::string::npos) << text;
  EXPECT_NE(text.find(": r0 110 B/s pass\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0002-disk-n2 crashed after"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::run
