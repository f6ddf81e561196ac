// Verdicts of DCGM, and figures of MLPerf Storage, elbencho and IOR. The outputs were written after the programs that
// write them: DCGM 4 (dcgmi's Diag), DLIO's statscounter, elbencho's Statistics (its values are of a published run),
// IOR's ior-output.c.
#include <gtest/gtest.h>

#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

TEST(ImportDcgm, verdicts_become_counts_of_failures_of_each_entity) {
  const auto import = import_of("dcgm", "dcgm_4.5.json");
  EXPECT_EQ(import.source.version, "4.5.3");
  EXPECT_EQ(import.figures.size(), 3U);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("software")}, {"entity_id", whole(0)}}), 0.0);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("software")}, {"entity_id", whole(1)}}), 1.0);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("memory")}, {"entity_id", whole(1)}}), std::nullopt);
}

TEST(ImportDcgm, what_was_skipped_or_not_run_is_neither_and_warnings_are_kept) {
  const auto import = import_of("dcgm", "dcgm_4.5.json");
  EXPECT_EQ(why(import, "test_categories[1].tests[0].results[1]"), "the tool says 'Skip'");
  EXPECT_EQ(why(import, "test_categories[1].tests[1].test_summary"), "the tool says 'Not Run'");
  EXPECT_EQ(why(import, "test_categories[0].tests[0].results[1].warnings[0]"),
            "Persistence Mode: Persistence mode for GPU 1 is disabled.");
}

TEST(ImportDcgm, a_test_that_failed_of_no_entity_is_a_failure_and_remarks_are_kept) {
  const auto import =
      imported("dcgm", changed(recorded("dcgm_4.5.json"), R"("test_summary": {"status": "Pass"})",
                               R"("test_summary": {"status": "Fail", "info": ["The plugin ended with signal 11"]})"));
  ASSERT_TRUE(import);
  const auto failed =
      std::ranges::find(import->figures, "test_categories[1].tests[0].test_summary", &judge::Figure::from);
  ASSERT_NE(failed, import->figures.end());
  EXPECT_EQ(failed->value, 1.0);
  EXPECT_EQ(why(*import, "test_categories[1].tests[0].test_summary.info[0]"), "The plugin ended with signal 11");
  EXPECT_EQ(why(*import, "test_categories[1].tests[0].results[0].info[0]"), "GPU 0 Allocated 81559 MB");
}

TEST(ImportDcgm, a_diagnosis_that_broke_or_is_of_another_form_is_refused) {
  const std::string output = recorded("dcgm_4.5.json");
  EXPECT_NE(
      refusal("dcgm", changed(output, "\"DCGM Diagnostic\": {", "\"DCGM Diagnostic\": {\"runtime_error\": \"no GPU\","))
          .find("DCGM Diagnostic.runtime_error: the tool failed: no GPU"),
      std::string::npos);
  EXPECT_NE(refusal("dcgm", changed(output, "DCGM Diagnostic", "DCGM Report")).find("DCGM Diagnostic: is missing"),
            std::string::npos);
  EXPECT_NE(refusal("dcgm", "{\"a\": 1}").find("DCGM Diagnostic: is missing"), std::string::npos);
  EXPECT_NE(refusal("dcgm",
                    changed(output, "\"entity_id\": 1, \"status\": \"Fail\"", "\"entity_id\": 0, \"status\": \"Fail\""))
                .find("appears twice"),
            std::string::npos);
}

TEST(ImportDcgm, the_form_of_version_3_has_numbers_of_gpus_as_texts) {
  const auto import = import_of("dcgm", "dcgm_3.3.json");
  EXPECT_EQ(import.source.version, "3.3.9");
  EXPECT_EQ(import.source.facts.at("driver"), text("535.183.01"));
  EXPECT_EQ(import.figures.size(), 4U);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("GPU Memory")}, {"entity_id", whole(0)}}), 0.0);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("GPU Memory")}, {"entity_id", whole(1)}}), 1.0);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("Denylist")}, {"entity_ids", text("0,1")}}), 0.0);
  EXPECT_EQ(value(import, "failures", "count", {{"test", text("Persistence Mode")}}), 1.0);
}

TEST(ImportDcgm, a_warning_of_version_3_is_neither_a_pass_nor_a_failure) {
  const auto import = import_of("dcgm", "dcgm_3.3.json");
  EXPECT_EQ(why(import, "test_categories[1].tests[1].results[0]"), "the tool says 'Warn'");
  EXPECT_EQ(why(import, "test_categories[1].tests[1].results[0].warnings"), "Clocks are being throttled");
  EXPECT_EQ(why(import, "test_categories[1].tests[0].results[1].warnings[0]"), "A DBE occurred during the test");
  EXPECT_EQ(why(import, "test_categories[0].tests[1].results[0].warnings[0]"),
            "Persistence mode for GPU 1 is disabled.");
  EXPECT_NE(
      refusal("dcgm", changed(recorded("dcgm_3.3.json"), "\"version\": \"3.3.9\"", "\"runtime_error\": \"no GPU\""))
          .find("DCGM GPU Diagnostic.runtime_error: the tool failed: no GPU"),
      std::string::npos);
}

TEST(ImportMlperfStorage, megabytes_are_mebibytes_and_shares_are_of_one) {
  const auto import = import_of("mlperf-storage", "mlperf_storage_training.json");
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"num_accelerators", whole(8)}}), 22512.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(value(import, "accelerator_utilisation", "mean", {}).value(), 0.97);
  EXPECT_DOUBLE_EQ(value(import, "sample_rate", "epoch", {{"epoch", whole(2)}}).value(), 162);
  EXPECT_EQ(import.source.facts.at("train_au_meet_expectation"), text("success"));
  EXPECT_EQ(why(import, "document"), "summary.json does not say it");
}

TEST(ImportMlperfStorage, a_checkpoint_is_in_gibibytes_and_what_is_unknown_is_listed) {
  const auto import = import_of("mlperf-storage", "mlperf_storage_checkpoint.json");
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"operation", text("save")}}), 70.0 * (1 << 30));
  EXPECT_EQ(value(import, "checkpoint_size", "total", {}), 912.0 * (1 << 30));
  EXPECT_EQ(why(import, "metric.checkpoint_subset"), "is not a figure that is known");
  EXPECT_NE(refusal("mlperf-storage", "{\"num_hosts\": 2}").find("metric: is missing"), std::string::npos);
  EXPECT_NE(refusal("mlperf-storage", changed(recorded("mlperf_storage_checkpoint.json"), "70.0", "true"))
                .find("metric.save_checkpoint_io_mean_GB_per_second: is not a number"),
            std::string::npos);
}

TEST(ImportElbencho, the_last_thread_counts_and_the_first_is_the_stonewall) {
  const auto import = import_of("elbencho", "elbencho_3.1.csv");
  const Values write = {{"operation", text("WRITE")}, {"block_size", whole(1048576)}};
  EXPECT_EQ(import.source.version, "3.1-1");
  EXPECT_EQ(value(import, "bandwidth", "mean", write), 2941.0 * (1 << 20));
  EXPECT_EQ(value(import, "bandwidth_stonewall", "mean", write), 3494.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(value(import, "latency", "max", write).value(), 0.120903);
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"operation", text("MKDIRS")}}), std::nullopt);  // blank: no 0
  EXPECT_EQ(value(import, "entry_rate", "mean", {{"operation", text("MKDIRS")}}), 1466.0);
  EXPECT_EQ(why(import, "line 4"), "it was off: the page cache may have been measured");
}

TEST(ImportElbencho, rows_that_do_not_fit_their_heading_are_refused) {
  const std::string output = recorded("elbencho_3.1.csv");
  EXPECT_NE(
      refusal("elbencho", changed(output, "READ,846", "READ,8,46")).find("line 4: 40 columns, the heading has 39"),
      std::string::npos);
  EXPECT_NE(refusal("elbencho", changed(output, "MiB/s [last]", "GiB/s")).find("has no column 'MiB/s [last]'"),
            std::string::npos);
  EXPECT_NE(refusal("elbencho", output.substr(output.find('\n') + 1)).find("line 1: comes before the heading"),
            std::string::npos);
  EXPECT_NE(refusal("elbencho", changed(output, ",9048,9673", ",9x48,9673")).find("'9x48' is not a number"),
            std::string::npos);
}

TEST(ImportElbencho, the_lines_of_its_json_are_the_rows_of_its_table) {
  const auto import = import_of("elbencho", "elbencho_3.1.json");
  const Values write = {{"operation", text("WRITE")}, {"block_size", whole(1048576)}, {"direct", whole(1)}};
  EXPECT_EQ(import.source.form, "json");
  EXPECT_EQ(import.source.version, "3.1-1");
  EXPECT_EQ(import.source.command, "\"elbencho\" \"-w\" \"--rwmixpct\" \"70\"");
  EXPECT_EQ(value(import, "bandwidth", "mean", write), 3083862016.0);
  EXPECT_EQ(value(import, "bandwidth_stonewall", "mean", write), 3663724544.0);
  EXPECT_DOUBLE_EQ(value(import, "latency", "max", write).value(), 0.120903);
  EXPECT_DOUBLE_EQ(value(import, "duration", "max", write).value(), 2.784);
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"operation", text("MKDIRS")}}), std::nullopt);
  EXPECT_EQ(value(import, "entry_rate", "mean", {{"operation", text("MKDIRS")}}), 1466.0);
  EXPECT_EQ(why(import, "line 3"), "it was off: the page cache may have been measured");
  EXPECT_EQ(why(import, "line 3/last_done"), "the reads of a mixed phase are not imported");
}

TEST(ImportElbencho, lines_of_json_that_are_cut_off_or_of_another_program_are_refused) {
  const std::string output = recorded("elbencho_3.1.json");
  EXPECT_NE(refusal("elbencho", output.substr(0, output.size() - 9) + "\n").find("line 3"), std::string::npos);
  EXPECT_NE(refusal("elbencho", changed(output, "\"config\"", "\"configuration\"")).find("line 1: config: is missing"),
            std::string::npos);
  EXPECT_NE(refusal("elbencho", changed(output, "\"2784\"", "2784")).find("must be a text"), std::string::npos);
  EXPECT_NE(refusal("elbencho", changed(output, "\"2941\"", "\"2x41\"")).find("'2x41' is not a number"),
            std::string::npos);
}

TEST(ImportIor, a_summary_in_which_fields_stand_twice_is_read) {
  const auto import = import_of("ior", "ior_4.0.json");
  const Values write = {{"operation", text("write")}, {"transferSize", whole(1048576)}, {"numTasks", whole(8)}};
  EXPECT_EQ(import.source.version, "4.0.0");
  EXPECT_EQ(import.source.command, "ior -w -r -t 1m -b 4g -F -e -O summaryFormat=JSON");
  EXPECT_EQ(value(import, "bandwidth", "mean", write), 3950.0 * (1 << 20));
  EXPECT_EQ(value(import, "duration", "mean", write), 8.296);
  EXPECT_EQ(why(import, "summary[0].segmentCount"), "the tool wrote it twice");
}

TEST(ImportIor, a_field_with_two_values_and_an_output_without_its_summary_are_refused) {
  const std::string output = recorded("ior_4.0.json");
  const std::string two =
      changed(output, "\"segmentCount\": 1, \n    \"blockSize\"", "\"segmentCount\": 2, \n    \"blockSize\"");
  EXPECT_NE(refusal("ior", two).find("segmentCount"), std::string::npos) << refusal("ior", two);
  EXPECT_NE(refusal("ior", changed(output, "\"summary\"", "\"max\"")).find("summary: is missing"), std::string::npos);
  EXPECT_NE(refusal("ior", "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n").find("is text"), std::string::npos);
  EXPECT_NE(
      refusal("ior", changed(output, "\"numTasks\": 8, ", "\"tasks\": 8, ")).find("summary[0].numTasks: is missing"),
      std::string::npos);
}

}  // namespace
}  // namespace assay::imports
