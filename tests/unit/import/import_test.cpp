// Figures imported from other tools' outputs: base units, places, and what is left out.
#include <gtest/gtest.h>

#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(ImportNcclTests, columns_are_told_apart_by_place_and_are_in_base_units) {
  const judge::Import import = import_of("nccl-tests", "nccl_tests_2.18.txt");
  const Values out{{"operation", text("all_reduce")}, {"size", whole(134217728)}, {"place", text("out_of_place")}};
  const Values in{{"operation", text("all_reduce")}, {"size", whole(134217728)}, {"place", text("in_place")}};
  EXPECT_EQ(value(import, "busbw", "mean", out), 163.20 * 1e9);
  EXPECT_EQ(value(import, "algbw", "mean", in), 86.81 * 1e9);
  EXPECT_DOUBLE_EQ(*value(import, "time", "mean", in), 1546.1e-6);
  EXPECT_EQ(value(import, "mismatches", "count", in), 0);
  EXPECT_EQ(import.source.version, "2.18.0 nccl-headers=22907 nccl-library=22907");
  EXPECT_EQ(import.source.facts.at("ranks"), whole(2));
}

TEST(ImportNcclTests, a_bandwidth_that_is_printed_as_zero_is_no_figure) {
  const judge::Import import = import_of("nccl-tests", "nccl_tests_2.18.txt");
  EXPECT_EQ(value(import, "busbw", "mean", {{"size", whole(8)}, {"place", text("in_place")}}), std::nullopt);
  EXPECT_DOUBLE_EQ(*value(import, "time", "mean", {{"size", whole(8)}, {"place", text("in_place")}}), 20.98e-6);
  EXPECT_TRUE(contains(why(import, "line 13"), "below the resolution"));
}

TEST(ImportNcclTests, the_speed_of_wrong_data_is_no_figure_and_the_count_is) {
  const judge::Import import = import_of("nccl-tests", "nccl_tests_2.18.txt");
  const Values in{{"size", whole(1073741824)}, {"place", text("in_place")}};
  EXPECT_EQ(value(import, "mismatches", "count", in), 3);
  EXPECT_EQ(value(import, "busbw", "mean", in), std::nullopt);
  EXPECT_EQ(value(import, "busbw", "mean", {{"size", whole(1073741824)}, {"place", text("out_of_place")}}),
            219.12 * 1e9);
  EXPECT_TRUE(contains(why(import, "line 15"), "3 elements were wrong"));
}

TEST(ImportNcclTests, unchecked_data_and_a_nan_become_neither_zero_nor_a_figure) {
  const judge::Import import =
      import_of("nccl-tests", "nccl_tests_tagged.txt", "mpirun -np 2 /opt/reduce_scatter_perf_mpi -c 0");
  const Values in{{"operation", text("reduce_scatter")}, {"size", whole(4096)}, {"place", text("in_place")}};
  EXPECT_EQ(value(import, "mismatches", "count", in), std::nullopt);
  EXPECT_EQ(value(import, "time", "mean", in), std::nullopt);
  EXPECT_EQ(value(import, "busbw", "mean", in), 0.13 * 1e9);
  EXPECT_TRUE(contains(why(import, "line 10"), "did not check"));
  EXPECT_TRUE(contains(why(import, "devices"), "one rank"));
}

TEST(ImportNcclTests, a_blank_reduction_of_older_versions_shifts_no_column) {
  const judge::Import import = import_of("nccl-tests", "nccl_tests_blank_redop.txt");
  EXPECT_EQ(value(import, "busbw", "mean", {{"size", whole(1048576)}, {"place", text("out_of_place")}}), 12.73 * 1e9);
  EXPECT_EQ(import.figures.front().at.count("redop"), 0);
}

TEST(ImportNcclTests, the_json_form_gives_the_same_and_nothing_of_the_environment_but_nccl) {
  const judge::Import import = import_of("nccl-tests", "nccl_tests.json");
  const Values out{{"operation", text("all_to_all")}, {"size", whole(1048576)}, {"place", text("out_of_place")}};
  const Values in{{"size", whole(1048576)}, {"place", text("in_place")}};
  EXPECT_EQ(value(import, "busbw", "mean", out), 12.73 * 1e9);
  EXPECT_DOUBLE_EQ(*value(import, "time", "p99", out), 55e-6);
  EXPECT_EQ(value(import, "time", "mean", in), std::nullopt);
  EXPECT_EQ(value(import, "mismatches", "count", in), std::nullopt);
  EXPECT_TRUE(contains(why(import, "results[0].in_place.nwrong"), "did not check"));
  EXPECT_EQ(value(import, "time", "min", {{"size", whole(2097152)}}), std::nullopt);
  EXPECT_EQ(value(import, "mismatches", "count", {{"size", whole(2097152)}}), 7);
  const std::string all = judge::import_text(import);
  EXPECT_FALSE(contains(all, "do-not-keep-this"));
  EXPECT_EQ(import.source.facts.at("env.NCCL_ALGO"), text("Ring"));
  EXPECT_EQ(import.source.command, "/opt/alltoall_perf -b 1M -J out.json");
}

TEST(ImportPerftest, decimal_gigabits_become_bytes_a_second_and_a_peak_that_was_not_measured_is_left_out) {
  const judge::Import import = import_of("perftest", "perftest_bw_gbits.txt");
  EXPECT_DOUBLE_EQ(*value(import, "bandwidth", "mean", {{"verb", text("RDMA_Write")}, {"size", whole(65536)}}),
                   392.40e9 / 8);
  EXPECT_EQ(value(import, "bandwidth", "peak", {{"size", whole(65536)}}), std::nullopt);
  EXPECT_DOUBLE_EQ(*value(import, "message_rate", "mean", {{"size", whole(65536)}}), 0.748444e6);
  EXPECT_EQ(import.source.facts.at("Device"), text("mlx5_0"));
  EXPECT_EQ(import.source.facts.at("Using Enhanced Reorder"), text("OFF"));
}

TEST(ImportPerftest, what_older_versions_call_megabytes_are_mebibytes_and_both_directions_are_another_metric) {
  const judge::Import import = import_of("perftest", "perftest_bw_old.txt");
  EXPECT_EQ(value(import, "bandwidth_both_directions", "mean", {{"verb", text("Send")}}), 990.0 * 1048576);
  EXPECT_EQ(value(import, "bandwidth", "mean", {}), std::nullopt);
  EXPECT_TRUE(contains(why(import, "line 21"), "2^20"));
  EXPECT_TRUE(std::ranges::any_of(
      import.left_out, [](const judge::LeftOut& one) { return contains(one.why, "Conflicting CPU frequency"); }));
}

TEST(ImportPerftest, a_read_latency_counts_the_round_trip_and_its_maximum_is_not_called_one) {
  const judge::Import import = import_of("perftest", "perftest_lat.txt");
  const Values at{{"verb", text("RDMA_Read")}, {"size", whole(2)}, {"counted", text("round_trip")}};
  EXPECT_DOUBLE_EQ(*value(import, "latency", "p50", at), 1.98e-6);
  EXPECT_DOUBLE_EQ(*value(import, "latency", "p99.9", at), 5.42e-6);
  EXPECT_DOUBLE_EQ(*value(import, "latency", "trimmed_max", at), 6.84e-6);
  EXPECT_EQ(value(import, "latency", "max", at), std::nullopt);
}

TEST(ImportPerftest, the_json_form_takes_its_unit_from_the_command_alone) {
  const Values at{{"size", whole(65536)}};
  EXPECT_DOUBLE_EQ(
      *value(import_of("perftest", "perftest_bw.json", "ib_write_bw --report_gbits -s 65536"), "bandwidth", "mean", at),
      392e9 / 8);
  EXPECT_EQ(value(import_of("perftest", "perftest_bw.json", "ib_write_bw -s 65536"), "bandwidth", "mean", at),
            392.0 * 1048576);
  EXPECT_TRUE(contains(refusal("perftest", recorded("perftest_bw.json")), "has no unit"));
  EXPECT_TRUE(contains(refusal("perftest", recorded("perftest_bw.json"), "as usual"), "--command 'ib_write_bw"));
  const judge::Import import = import_of("perftest", "perftest_lat.json");
  EXPECT_DOUBLE_EQ(*value(import, "latency", "p50", {{"counted", text("half_round_trip")}}), 1.2e-6);
  EXPECT_TRUE(contains(why(import, "results.t_stdev"), "whole microseconds"));
}

TEST(ImportNvbandwidth, cells_are_figures_and_absent_ones_are_none) {
  const judge::Import import = import_of("nvbandwidth", "nvbandwidth_0.7.json");
  EXPECT_EQ(value(import, "bandwidth", "median", {{"test", text("host_to_device_memcpy_ce")}, {"column", whole(1)}}),
            55.64 * 1e9);
  const Values write{{"test", text("device_to_device_memcpy_write_ce")}};
  EXPECT_EQ(value(import, "bandwidth", "median", write), 396.1 * 1e9);  // the only one of four
  EXPECT_TRUE(contains(why(import, "nvbandwidth.testcases[1].bandwidth_matrix[1][0]"), "'-nan'"));
  EXPECT_DOUBLE_EQ(*value(import, "latency", "median", {{"test", text("host_device_latency_sm")}}), 772.58e-9);
  EXPECT_EQ(import.source.version, "v0.7");
}

TEST(ImportNvbandwidth, the_three_tables_of_both_directions_are_told_apart) {
  const judge::Import import = import_of("nvbandwidth", "nvbandwidth_0.7.json");
  const auto cell = [&](const char* direction) {
    return value(import, "bandwidth", "median",
                 {{"test", text("device_to_device_bidirectional_memcpy_read_ce")},
                  {"direction", text(direction)},
                  {"row", whole(1)}});
  };
  EXPECT_EQ(cell("first"), 392 * 1e9);
  EXPECT_EQ(cell("second"), 394 * 1e9);
  EXPECT_EQ(cell("both"), 786 * 1e9);
}

TEST(ImportNvbandwidth, a_waived_a_failed_and_a_wrongly_measured_test_give_no_figure) {
  const judge::Import import = import_of("nvbandwidth", "nvbandwidth_0.7.json");
  EXPECT_TRUE(contains(why(import, "nvbandwidth.testcases[4]"), "before 0.8"));
  EXPECT_TRUE(contains(why(import, "nvbandwidth.testcases[5]"), "'Waived'"));
  EXPECT_TRUE(contains(why(import, "nvbandwidth.testcases[6]"), "this test failed"));
  const auto newer = imported(
      "nvbandwidth", changed(recorded("nvbandwidth_0.7.json"), "\"version\" : \"v0.7\"", "\"version\" : \"v0.8\""));
  ASSERT_TRUE(newer) << newer.error().text();
  EXPECT_EQ(value(*newer, "latency", "median", {{"test", text("device_to_device_latency_sm")}, {"row", whole(0)}}),
            700.1 * 1e-9);
}

TEST(ImportFio, bytes_a_second_come_from_the_field_that_is_in_bytes) {
  const judge::Import import = import_of("fio", "fio_3.33.json");
  const Values at{{"job", text("t")}, {"direction", text("read")}};
  EXPECT_EQ(value(import, "bandwidth", "mean", at), 17712432);
  EXPECT_EQ(value(import, "iops", "mean", at), 270.27027);
  EXPECT_DOUBLE_EQ(*value(import, "completion_latency", "p99.9", at), 14.8e-3);
  EXPECT_DOUBLE_EQ(*value(import, "completion_latency", "min", at), 389056e-9);
}

TEST(ImportFio, what_a_job_did_is_a_coordinate_with_fios_defaults) {
  const std::string recorded_one = recorded("fio_3.33.json");
  const judge::Import plain = import_of("fio", "fio_3.33.json");
  EXPECT_EQ(value(plain, "bandwidth", "mean", {{"rw", text("read")}}), 17712432);
  EXPECT_EQ(plain.figures[0].at.at("iodepth"), Value(whole(1)));
  const auto random =
      imported("fio", changed(recorded_one, "\"rw\" : \"read\"", "\"rw\" : \"randread\", \"bs\" : \"64k\""));
  ASSERT_TRUE(random);
  EXPECT_EQ(value(*random, "bandwidth", "mean", {{"rw", text("randread")}, {"bs", whole(65536)}}), 17712432);
}

TEST(ImportFio, what_was_not_measured_is_no_zero) {
  const judge::Import import = import_of("fio", "fio_3.33.json");
  EXPECT_EQ(value(import, "submission_latency", "min", {}), std::nullopt);
  EXPECT_TRUE(contains(why(import, "jobs[0].read.slat_ns"), "no sample"));
  EXPECT_EQ(value(import, "latency", "mean", {}), std::nullopt);
  EXPECT_TRUE(contains(why(import, "jobs[0].read.lat_ns.mean"), "null"));
  EXPECT_TRUE(contains(why(import, "document"), "JSON has no such number"));
  EXPECT_EQ(why(import, "jobs[0].read"), "1");  // operations that were dropped
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"direction", text("write")}}), std::nullopt);
  EXPECT_EQ(why(import, "jobs[0]"), "");
  const auto buffered = imported("fio", changed(recorded("fio_3.33.json"), "\"direct\" : \"1\", ", ""));
  ASSERT_TRUE(buffered);
  EXPECT_TRUE(contains(why(*buffered, "jobs[0]"), "the page cache may have been measured"));
}

TEST(ImportOsu, megabytes_are_a_million_bytes_and_the_size_is_a_coordinate) {
  const judge::Import import = import_of("osu", "osu_bw_7.5.txt");
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"test", text("OSU MPI Bandwidth Test")}, {"size", whole(65536)}}),
            11873.27 * 1e6);
  EXPECT_EQ(import.figures.size(), 1);
  EXPECT_TRUE(contains(why(import, "line 5"), "below the resolution"));
  EXPECT_TRUE(contains(why(import, "line 7"), "'-nan'"));
  EXPECT_EQ(import.source.version, "7.5");
}

TEST(ImportOsu, full_statistics_a_barrier_and_validation_are_understood) {
  const judge::Import full = import_of("osu", "osu_allreduce_full.txt");
  EXPECT_DOUBLE_EQ(*value(full, "latency", "slowest_rank", {{"size", whole(1048576)}}), 240.10e-6);
  EXPECT_DOUBLE_EQ(*value(import_of("osu", "osu_barrier.txt"), "latency", "mean", {}), 12.57e-6);
  const judge::Import validated = import_of("osu", "osu_validated.txt");
  EXPECT_EQ(validated.figures.size(), 1);
  EXPECT_TRUE(contains(why(validated, "line 4"), "'Fail'"));
}

TEST(ImportText, says_on_every_line_that_it_is_imported_and_is_the_same_every_time) {
  const judge::Import import = import_of("osu", "osu_barrier.txt");
  EXPECT_EQ(
      judge::import_text(import),
      R"({"schema":"assay.imported/1","sequence":0,"source":{"tool":"osu","form":"text","version":"5.8","file":"given.txt","bytes":72,)"
      R"("sha256":"0abe27a46c75c75b7f634aae6933131cd130f0b30f7a9c38c81349894e19faa5","facts":{"test":"OSU MPI Barrier Latency Test"}}})"
      "\n"
      R"({"sequence":1,"imported":{"metric":"latency","unit":"s","statistic":"mean","at":{"test":"OSU MPI Barrier Latency Test"},"value":1.257e-05,"from":"line 3"}})"
      "\n"
      R"({"sequence":2,"end":{"status":"complete","imported":1,"left_out":0}})"
      "\n");
}

}  // namespace
}  // namespace assay::imports
