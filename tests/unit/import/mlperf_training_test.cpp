// Figures of a training run. The log was written after those of submissions to MLPerf Training 5.1; its numbers are
// made up.
#include <gtest/gtest.h>

#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

constexpr const char* kTool = "mlperf-training";
const std::string kStop = R"("key": "run_stop")";

std::string log_text() { return recorded("mlperf_training.txt"); }

TEST(ImportMlperfTraining, a_run_takes_the_time_from_its_start_to_its_stop_and_has_its_facts) {
  const auto import = import_of(kTool, "mlperf_training.txt");
  EXPECT_DOUBLE_EQ(value(import, "run_time", "run", {}).value(), 51.85);
  EXPECT_EQ(import.source.form, "text");
  EXPECT_EQ(import.source.facts.at("submission_benchmark"), text("llama31_8b"));
  EXPECT_EQ(import.source.facts.at("global_batch_size"), whole(32));
  EXPECT_EQ(import.source.facts.at("train_samples"), whole(43 * 32));
}

TEST(ImportMlperfTraining, throughput_is_as_logged_and_what_it_counts_is_listed_as_unknown) {
  const auto import = import_of(kTool, "mlperf_training.txt");
  EXPECT_EQ(value(import, "throughput", "block", {{"block", whole(1)}, {"step", whole(23 * 32)}}), 30.5);
  EXPECT_EQ(value(import, "throughput", "block", {{"block", whole(2)}}), 32.0);
  EXPECT_EQ(why(import, "document"), "the log does not say whether samples or tokens");
}

TEST(ImportMlperfTraining, steps_give_their_median_and_tail_without_the_first_three_and_without_means_of_blocks) {
  const auto import = import_of(kTool, "mlperf_training.txt");
  EXPECT_EQ(value(import, "steps", "count", {}), 40.0);
  EXPECT_EQ(value(import, "step_time", "median", {}), 1.0);
  EXPECT_EQ(value(import, "step_time", "max", {}), 1.2);
  EXPECT_DOUBLE_EQ(value(import, "step_time", "p95", {}).value(), 1.0025);
  EXPECT_EQ(value(import, "long_steps", "share", {}), 1.0 / 40);
  EXPECT_EQ(std::ranges::count(import.left_out, "has no step: a mean over a block", &judge::LeftOut::why), 2);
}

TEST(ImportMlperfTraining, a_document_that_the_job_printed_and_a_last_line_without_its_end_do_no_harm) {
  const std::string whole_log = log_text();
  const auto beside = imported(kTool, "{\n \"lr\": 1\n}\n" + whole_log);
  ASSERT_TRUE(beside.has_value()) << beside.error().text();
  EXPECT_EQ(beside->source.form, "text");
  EXPECT_EQ(beside->figures.size(), import_of(kTool, "mlperf_training.txt").figures.size());
  EXPECT_TRUE(imported(kTool, whole_log.substr(0, whole_log.size() - 1)).has_value());
}

TEST(ImportMlperfTraining, a_run_that_did_not_end_well_or_is_not_whole_is_refused) {
  const std::string whole_log = log_text();
  const auto says = [](const std::string& log, const std::string& part) {
    EXPECT_NE(refusal(kTool, log).find(part), std::string::npos) << refusal(kTool, log);
  };
  says(changed(whole_log, "success", "aborted"), "the run ended with status \"aborted\"");
  says(changed(whole_log, R"("status": "success", )", ""), "does not say with which status the run ended");
  says(changed(whole_log, kStop, R"("key": "other")"), "run_stop: is missing: the run was cut off");
  says(changed(whole_log, R"("key": "run_start")", R"("key": "other")"), "run_start: is missing");
  says(whole_log + whole_log, "is the second run_start, after line 10");
  says(whole_log.substr(0, whole_log.size() - 9), "is no event");
  says("Epoch 0\n", "run_start: is missing");
  says(changed(whole_log, R"("train_step_time": 4.0)", R"("train_step_time": -4.0)"),
       "train_step_time is no time above 0");
  says(changed(whole_log, R"("time_ms": 17)", R"("time_ms": "17)"), "is no event");
  says(changed(whole_log, R"("throughput": 30.5)", R"("throughput": true)"),
       "is not a number, expected the throughput");
}

TEST(ImportMlperfTraining, times_that_go_back_are_refused) {
  const std::string log = R"(:::MLLOG {"time_ms": 2000, "key": "run_start"}
:::MLLOG {"time_ms": 1000, "key": "run_stop", "metadata": {"status": "success"}}
)";
  EXPECT_NE(refusal(kTool, log).find("line 1 to line 2: the run_time is negative"), std::string::npos);
}

}  // namespace
}  // namespace assay::imports
