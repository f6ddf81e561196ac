// Forms in which these tools' outputs are published: other launchers, editors and versions, and options that change
// what a number is.
#include <gtest/gtest.h>

#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

const Values kNothing;

bool has(const std::string& words, const std::string& part) { return words.find(part) != std::string::npos; }

judge::Import taken(const std::string& tool, const std::string& text, const std::string& command = "") {
  auto import = imported(tool, text, command);
  if (!import) throw std::runtime_error(import.error().text());
  return *import;
}

/// Everything that was left out, one item a line.
std::string left_out(const judge::Import& import) {
  std::string text;
  for (const auto& one : import.left_out) text += one.from + ": " + one.what + ": " + one.why + "\n";
  return text;
}

/// The conditions of the first figure; empty if it has none.
std::string conditions(const judge::Import& import) {
  const auto found = import.figures.front().at.find("conditions");
  return found == import.figures.front().at.end() ? "" : std::get<std::string>(found->second);
}

// ---------------------------------------------------------------------------------------------------------------- fio

constexpr const char* kWork = R"("read":{"io_bytes":1000000,"total_ios":1000,"bw_bytes":50000,"iops":12.5})";

/// A document of one job with these options, as members of an object.
std::string fio_job(const std::string& options, const std::string& work = kWork) {
  return R"({"fio version":"fio-3.41","global options":{"direct":"1","ioengine":"libaio",)" + options +
         R"(},"jobs":[{"jobname":"t","groupid":0,"error":0,)" + work + "}]}\n";
}

struct FioOption {
  const char* options;
  const char* coordinate;
  Value is;
};

class ImportFioOption : public testing::TestWithParam<FioOption> {};

TEST_P(ImportFioOption, is_read_by_fios_own_rules) {
  const auto import = taken("fio", fio_job(GetParam().options));
  const auto& at = import.figures.front().at;
  ASSERT_TRUE(at.contains(GetParam().coordinate)) << GetParam().options;
  EXPECT_EQ(at.at(GetParam().coordinate), GetParam().is) << GetParam().options;
}

const FioOption kFioOptions[] = {
    {R"("bs":"1MiB")", "bs", whole(1000000)},
    {R"("bs":"1MB")", "bs", whole(1048576)},
    {R"("bs":"1m")", "bs", whole(1048576)},
    {R"("bs":"4kib")", "bs", whole(4000)},
    {R"("bs":"4096B")", "bs", whole(4096)},
    {R"("bs":"1GiB")", "bs", whole(1000000000)},
    {R"("bs":"4k","kb_base":"1000")", "bs", whole(4000)},
    {R"("bs":"4KiB","kb_base":"1000")", "bs", whole(4096)},
    {R"("bs":"4KiB","kb_base":"1024")", "bs", whole(4000)},
    {R"("rw":"randrw","bs":"4k,128k")", "bs", whole(4096)},
    {R"("rw":"randrw","bs":",128k")", "bs", whole(4096)},
    {R"("bssplit":"4k/50:64k/50")", "bs", text("bssplit=4k/50:64k/50")},
    {R"("bsrange":"4k-64k")", "bs", text("bsrange=4k-64k")},
    {R"("bs":"4furlong")", "bs", text("4furlong")},
    {R"("bs":"4k","bs":"8k")", "bs", whole(8192)},
    {R"("iodepth":"32")", "iodepth", whole(32)},
    {R"("iodepth":"32","ioengine":"psync")", "iodepth", whole(1)},
    {R"("rate":"10m")", "conditions", text("rate=10m")},
    {R"("zero_buffers":"")", "conditions", text("zero_buffers=")},
    {R"("direct":"0")", "conditions", text("direct=0")},
    {R"("ioengine":"null")", "conditions", text("ioengine=null")},
    {R"("rw":"write")", "conditions", text("no read of rw=write: of another job of its group, or of a verification")},
};
INSTANTIATE_TEST_SUITE_P(, ImportFioOption, testing::ValuesIn(kFioOptions));

TEST(ImportFioForms, writes_have_their_own_block_size_and_plain_options_no_conditions) {
  const auto import = taken("fio", fio_job(R"("rw":"randrw","bs":"4k,128k","rate":"0","verify":"0")",
                                           R"("write":{"io_bytes":1,"total_ios":1,"bw_bytes":9,"iops":1})"));
  EXPECT_EQ(import.figures.front().at.at("bs"), whole(131072));
  EXPECT_EQ(conditions(import), "");
}

TEST(ImportFioForms, jobs_that_ran_at_once_are_told_from_jobs_that_ran_alone) {
  const std::string job = std::string(R"({"jobname":"t","error":0,)") + kWork + R"(,"groupid":)";
  const auto document = [&](const std::string& options, const std::string& second) {
    return R"({"fio version":"fio-3.28","global options":{"direct":"1","ioengine":"libaio")" + options +
           R"(},"jobs":[)" + job + "0}," + job + second + "}]}\n";
  };
  EXPECT_EQ(conditions(taken("fio", document(R"(,"numjobs":"2")", "0"))), "one of 2 at once");
  EXPECT_EQ(conditions(taken("fio", document(R"(,"stonewall":"")", "1"))), "");
  EXPECT_EQ(conditions(taken("fio", document(R"(,"new_group":"")", "1"))), "one of 2 at once");
}

TEST(ImportFioForms, clients_of_servers_are_told_apart_by_host_and_their_sum_by_its_name) {
  const auto client = [](const std::string& name, const std::string& place) {
    return R"({"jobname":")" + name + R"(","groupid":0,"error":0,"job options":{"numjobs":"1"},)" + kWork + place + "}";
  };
  const std::string first = R"(,"hostname":"a","port":8765)", second = R"(,"hostname":"b","port":8765)";
  const auto import =
      taken("fio", R"({"fio version":"fio-3.6","global options":[{"hostname":"a","port":8765,"direct":"1","bs":"64k",)"
                   R"("ioengine":"libaio"},{"hostname":"b","port":8765,"direct":"1","bs":"4k","ioengine":"libaio"}],)"
                   R"("client_stats":[)" +
                       client("t", first) + "," + client("t", second) + "," + client("All clients", second) +
                       R"(],"disk_util":[]})" + "\n");
  EXPECT_EQ(value(import, "bandwidth", "mean", {{"hostname", text("a")}, {"bs", whole(65536)}}), 50000);
  EXPECT_EQ(value(import, "bandwidth", "mean",
                  {{"hostname", text("b")}, {"bs", whole(4096)}, {"conditions", text("one of 2 at once")}}),
            50000);
  EXPECT_EQ(value(import, "bandwidth", "mean",
                  {{"job", text("All clients")}, {"conditions", text("sum over 2 jobs of clients")}}),
            50000);
}

TEST(ImportFioForms, groups_of_one_client_come_one_after_the_other) {
  const auto job = [](const char* group) {
    return std::string(R"({"jobname":"t","error":0,"hostname":"a","port":8765,"groupid":)") + group + "," + kWork + "}";
  };
  const std::string begin =
      R"({"fio version":"fio-3.28","global options":[{"hostname":"a","port":8765,"direct":"1"}],"client_stats":[)";
  EXPECT_EQ(conditions(taken("fio", begin + job("0") + "," + job("1") + "]}\n")), "");
  EXPECT_EQ(conditions(taken("fio", begin + job("0") + "," + job("0") + "]}\n")), "one of 2 at once");
}

TEST(ImportFioForms, lines_around_a_document_are_listed_and_an_empty_one_is_refused_with_them) {
  const auto around = taken("fio", "fio: note: both iodepth >= 1 and synchronous I/O engine\n" +
                                       fio_job(R"("bs":"4k")") + "\nRun status group 0 (all jobs):\n");
  EXPECT_TRUE(has(left_out(around), "line 1: a line that is not read: fio: note: both iodepth"));
  EXPECT_TRUE(has(left_out(around), "line 4: a line that is not read: Run status group 0"));
  const std::string failed = refusal("fio",
                                     "<n02> error: failed to setup shm segment\n\n"
                                     R"({ "fio version" : "fio-3.43", "global options" : {}, "client_stats" : [] })"
                                     "\n");
  EXPECT_TRUE(has(failed, "no figure that can be imported; line 1")) << failed;
  EXPECT_TRUE(has(failed, "<n02> error: failed to setup shm segment")) << failed;
  EXPECT_TRUE(
      has(refusal("fio", fio_job(R"("bs":"4k")") + fio_job(R"("bs":"4k")")), "line 2: a second document begins"));
  EXPECT_TRUE(has(refusal("fio", fio_job(R"("bs":"4k")") + "}\n"), "line 2: '}' behind the document"));
}

TEST(ImportFioForms, repeated_options_and_unset_percentiles_are_read_and_repeated_figures_refused) {
  const auto files = taken("fio", fio_job(R"("filename":"/dev/a","filename":"/dev/b","filename":"/dev/c")"));
  EXPECT_EQ(files.source.facts.at("global.filename"), text("/dev/a"));
  EXPECT_EQ(files.source.facts.at("global.filename (3)"), text("/dev/c"));
  const auto old =
      taken("fio",
            fio_job(R"("bs":"4k")", R"("read":{"io_bytes":1,"total_ios":1,"bw_bytes":9,"iops":1,"clat_ns":{"min":1000,)"
                                    R"("max":3000,"mean":2000,"percentile":{"99.000000":2500,"0.00":0,"0.00":0}}})"));
  EXPECT_DOUBLE_EQ(*value(old, "completion_latency", "p99", kNothing), 2.5e-6);
  EXPECT_TRUE(has(refusal("fio", fio_job(R"("bs":"4k")", R"("read":{"io_bytes":1,"io_bytes":2,"total_ios":1})")),
                  "the key 'io_bytes' is in one object twice"));
}

TEST(ImportFioForms, a_newer_versions_fields_are_listed) {
  const auto import =
      taken("fio", fio_job(R"("bs":"4k")", R"("latency_colour":"red","latency_target_ns":0,)" + std::string(kWork)));
  EXPECT_EQ(value(import, "bandwidth", "mean", kNothing), 50000);
  EXPECT_EQ(left_out(import),
            "jobs[0].latency_colour: an unknown field: probably of a newer version of the tool; it is not read\n");
}

// ------------------------------------------------------------------------------------------------ labels, marks, ends

TEST(ImportForms, labels_of_launchers_a_byte_order_mark_and_a_last_line_without_end_lose_no_other_row) {
  const std::string title = "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n";
  const auto labelled = [&](const std::string& label) {
    std::string all;
    for (const char* line : {"# OSU MPI Bandwidth Test v7.5", "# Size      Bandwidth (MB/s)", "8   2.50", "16  5.00"})
      all += label + line + "\n";
    return value(taken("osu", all), "bandwidth", "mean", {{"size", whole(8)}});
  };
  for (const char* label : {"0: ", " 3: ", "[0] ", "[1,0]<stdout>:", "[1,mpirank:0,n01]<stdout>: ", "n01.example: "})
    EXPECT_EQ(labelled(label), 2.5e6) << label;
  const auto marked = taken("osu", "\xEF\xBB\xBF" + title + "8 2.50\r\n16  5.0");
  EXPECT_EQ(value(marked, "bandwidth", "mean", {{"size", whole(8)}}), 2.5e6);
  EXPECT_EQ(value(marked, "bandwidth", "mean", {{"size", whole(16)}}), std::nullopt);
  EXPECT_TRUE(has(left_out(marked), "line 1: a byte order mark")) << left_out(marked);
  EXPECT_TRUE(has(left_out(marked), "line 4: the last row: it has no end of line")) << left_out(marked);
  EXPECT_TRUE(has(refusal("osu", std::string("\xFF\xFE#\0 \0", 6)), "byte order mark of UTF-16"));
  EXPECT_TRUE(has(refusal("osu", std::string("#\0 \0O\0", 6)), "line 1: has a NUL byte"));
}

TEST(ImportForms, a_byte_order_mark_before_json_is_listed) {
  EXPECT_TRUE(has(left_out(taken("fio", "\xEF\xBB\xBF" + fio_job(R"("bs":"4k")"))), "line 1: a byte order mark"));
}

TEST(ImportOsuForms, other_lines_are_listed_and_a_failure_is_refused) {
  const std::string table = "# OSU MPI Latency Test v5.7.1\n# Size          Latency (us)\n8 1.50\n";
  const auto noisy = taken("osu", "Loading module openmpi\n" + table + "[n01:7] UCX  WARN  object leak\n");
  EXPECT_DOUBLE_EQ(*value(noisy, "latency", "mean", kNothing), 1.5e-6);
  EXPECT_TRUE(has(left_out(noisy), "Loading module openmpi") && has(left_out(noisy), "UCX  WARN"));
  const auto newer = taken("osu", changed(table, "# Size", "# Warp factor 9\n# Size"));
  EXPECT_TRUE(has(left_out(newer), "line 2: a setting that is not known: Warp factor 9"));
  EXPECT_TRUE(
      has(refusal("osu", changed(table, "Latency (us)", "Latency (ms)")), "'Latency (ms)' is not a known column"));
  EXPECT_TRUE(has(refusal("osu", table + "MPI_ABORT was invoked on rank 1\n"), "line 4: reports a failure"));
}

TEST(ImportOsuForms, both_directions_at_once_are_a_condition) {
  const std::string output =
      "# OSU MPI-CUDA Bi-Directional Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n8192  16477.70\n";
  EXPECT_EQ(conditions(taken("osu", output)), "both directions at once");
  EXPECT_EQ(conditions(taken("osu", changed(output, "Bi-Directional ", ""))), "");
}

// --------------------------------------------------------------------------------------------------------- nccl-tests

constexpr const char* kNcclHead =
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
constexpr const char* kNcclRow = "1048576 262144 float sum -1 76.26 13.75 25.78 0 76.43 13.72 25.72 0\n";
constexpr const char* kNcclTail = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.5\n";

std::string nccl(const std::string& rows, const std::string& before = "",
                 const std::string& settings = "agg iters: 1") {
  return before + "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 " + settings +
         " validation: 1 graph: 0\n#\n# Using devices\n#  Rank  0 Group  0 Pid 7 on n01 device  0 [0000:8f:00] NVIDIA "
         "B200\n"
         "#  Rank  1 Group  0 Pid 8 on n02 device  0 [0000:8f:00] NVIDIA B200\nNCCL version 2.26.6+cuda12.8\n#\n" +
         kNcclHead + rows + kNcclTail;
}

TEST(ImportNcclForms, rows_of_size_0_are_counted_and_left_out) {
  const std::string empty = "0 0 float none -1 0.06 0.00 0.00 0 0.06 0.00 0.00 0\n";
  const auto import = taken("nccl-tests", nccl(empty + empty + kNcclRow));
  EXPECT_EQ(value(import, "busbw", "mean", {{"place", text("in_place")}}), 25.72e9);
  EXPECT_TRUE(has(left_out(import), "table: 2 rows of size 0"));
  EXPECT_TRUE(has(left_out(import), "state it with --command 'all_reduce_perf"));
  EXPECT_EQ(import.source.facts.at("nodes"), whole(2));
}

TEST(ImportNcclForms, lines_of_a_login_are_listed_and_rows_of_further_cycles_numbered) {
  const auto import =
      taken("nccl-tests", nccl(std::string(kNcclRow) + kNcclRow, "Warning: Permanently added 'n01'\n2 hosts\n"),
            "all_reduce_perf -N 2");
  EXPECT_TRUE(has(left_out(import), "line 1: a line that is not read: Warning: Permanently added"));
  EXPECT_EQ(value(import, "algbw", "mean", {{"place", text("in_place")}, {"cycle", whole(2)}}), 13.72e9);
}

TEST(ImportNcclForms, options_that_change_the_number_are_conditions) {
  EXPECT_EQ(conditions(taken("nccl-tests", nccl(kNcclRow))), "");
  EXPECT_EQ(conditions(taken("nccl-tests", nccl(kNcclRow, "", "agg iters: 8"))), "agg iters 8");
  EXPECT_EQ(conditions(taken("nccl-tests", nccl(kNcclRow), "mpirun -a x all_reduce_perf -a2 -g 1")),
            "the shortest time of a rank");
  EXPECT_EQ(conditions(taken("nccl-tests", nccl(kNcclRow), "all_reduce_perf --average=3")),
            "the longest time of a rank");
  EXPECT_EQ(conditions(taken("nccl-tests", nccl(kNcclRow), "all_reduce_perf -a 1 -D 0")), "");
  EXPECT_EQ(conditions(taken("rccl-tests", nccl(kNcclRow), "all_reduce_perf -Y fine -u 0xf --rotating_tensor=1 -F 0")),
            "memory type fine; CU mask 0xf; rotating tensor 1");
  EXPECT_EQ(conditions(taken("rccl-tests", nccl(kNcclRow), "all_reduce_perf -Y coarse -E 0")), "");
  EXPECT_EQ(conditions(taken("nccl-tests", changed(recorded("nccl_tests.json"), "\"aggregated_iterations\":1",
                                                   "\"aggregated_iterations\":4"))),
            "agg iters 4");
}

TEST(ImportNcclForms, groups_that_ran_at_once_are_no_collective_of_all_ranks) {
  const std::string groups = "2 groups of ranks at once";
  EXPECT_EQ(conditions(taken("nccl-tests", changed(nccl(kNcclRow), "Rank  1 Group  0", "Rank  0 Group  1"))), groups);
  const std::string device = R"({"rank":0,"group":1,"pid":9,"hostname":"n02","device":0},)";
  EXPECT_EQ(
      conditions(taken("nccl-tests", changed(recorded("nccl_tests.json"), R"({"rank":0)", device + R"({"rank":0)"))),
      groups);
}

TEST(ImportNcclForms, rccl_tests_banner_and_its_columns_of_the_algorithm_are_read) {
  const std::string head = changed(changed(kNcclHead, "  busbw #wrong\n", "  busbw #wrong  algo  proto  nchannels\n"),
                                   "(GB/s)  (GB/s)\n", "(GB/s)  (GB/s)   \n");
  const auto import = taken("nccl-tests",
                            "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 agg iters: 1\n#\n"
                            "rccl-tests: Version develop:6405c76\n# Using devices\nRCCL version : 2.27.7\n"
                            "HIP version  : 7.0.5\nROCm version : 7.0.1\n" +
                                head + changed(kNcclRow, " 0\n", " 0 RING SIMPLE 32\n") + kNcclTail);
  EXPECT_EQ(value(import, "busbw", "mean",
                  {{"operation", text("all_reduce")}, {"algo", text("RING")}, {"place", text("out_of_place")}}),
            25.78e9);
  EXPECT_EQ(import.source.facts.at("RCCL version"), text("2.27.7"));
}

TEST(ImportNcclForms, a_column_that_is_not_known_is_listed_unless_it_has_a_unit) {
  const std::string head = changed(kNcclHead, "root", "root  colour");
  const std::string row = changed(kNcclRow, " -1 ", " -1 red ");
  const auto import = taken("nccl-tests", changed(changed(nccl(kNcclRow), kNcclHead, head), kNcclRow, row));
  EXPECT_EQ(value(import, "busbw", "mean", {{"place", text("in_place")}}), 25.72e9);
  EXPECT_TRUE(has(left_out(import), "the column 'colour'"));
}

TEST(ImportNcclForms, the_table_of_2021_has_figures_unless_its_elements_were_wrong) {
  const std::string old =
      changed(changed(changed(nccl(kNcclRow), "#wrong", "error"), "#wrong", "error"), " 0 76.43", " N/A 76.43");
  EXPECT_EQ(value(taken("nccl-tests", old), "busbw", "mean", {{"place", text("out_of_place")}}), 25.78e9);
  EXPECT_TRUE(has(refusal("nccl-tests", changed(old, ": 0 OK", ": 3 FAILED")), "elements were wrong"));
  const std::string blank = changed(changed(old, "redop    root", "redop"), " float sum -1 ", " float ");
  EXPECT_EQ(value(taken("nccl-tests", blank), "busbw", "mean", {{"place", text("out_of_place")}}), 25.78e9);
}

// ----------------------------------------------------------------------------------------------------------- perftest

constexpr const char* kBoth =
    "                    Send Bidirectional BW Test\n Number of qps   : 1\t\tTransport type : IB\n";
constexpr const char* kBwHead = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n";

TEST(ImportPerftestForms, of_both_ends_reports_the_sum_and_each_direction_are_told_apart) {
  const auto import =
      taken("perftest", std::string(kBoth) + kBwHead + " 8388608 1000 393.40 393.36 0.005862\n\n Local results: \n" +
                            kBwHead + " 8388608 1000 196.69 196.68 0.002931\n\n Remote results: \n" + kBwHead +
                            " 8388608 1000 196.71 196.68 0.002931\n");
  EXPECT_DOUBLE_EQ(*value(import, "bandwidth_both_directions", "mean", kNothing), 393.36e9 / 8);
  for (const char* end : {"Local", "Remote"})
    EXPECT_DOUBLE_EQ(*value(import, "bandwidth", "mean",
                            {{"end", text(end)}, {"conditions", text("the other direction at the same time")}}),
                     196.68e9 / 8);
}

TEST(ImportPerftestForms, the_json_of_both_ends_reports_is_one_direction_and_a_command_that_does_not_fit_is_refused) {
  const std::string both =
      changed(recorded("perftest_bw.json"), "RDMA_Write_BW_Test", "RDMA_Write_Bidirectional_BW_Test");
  const auto import = taken("perftest", both, "ib_write_bw -b --report_gbits --report-both");
  EXPECT_EQ(value(import, "bandwidth_both_directions", "mean", kNothing), std::nullopt);
  EXPECT_DOUBLE_EQ(*value(import, "bandwidth", "mean", {{"end", text("Remote")}}), 392e9 / 8);
  EXPECT_DOUBLE_EQ(
      *value(taken("perftest", both, "ib_write_bw -Fb --report_gbits"), "bandwidth_both_directions", "mean", kNothing),
      392e9 / 8);
  EXPECT_TRUE(
      has(refusal("perftest", both, "ib_write_bw --report_gbits"), "of both directions, and the command has no -b"));
  EXPECT_TRUE(has(refusal("perftest", recorded("perftest_bw.json"), "ib_write_bw -b"), "of one direction"));
  EXPECT_TRUE(has(refusal("perftest", recorded("perftest_bw.json"), "ib_send_bw"), "is of RDMA_Write"));
}

TEST(ImportPerftestForms, the_lines_of_cuda_are_read_or_listed_and_make_the_memory_that_of_a_gpu) {
  const std::string plain = recorded("perftest_bw_gbits.txt");
  EXPECT_EQ(taken("perftest", plain).figures.front().at.at("memory"), text("host"));
  const auto import = taken("perftest",
                            "Perftest doesn't supports CUDA tests with inline messages: inline size set to 0\n\n"
                            "initializing CUDA\nCUDA device integrated: 0\nallocated GPU buffer of a 131072 address "
                            "at 0x7f for type CUDA_MEM_DEVICE\n" +
                                plain + "deallocating GPU buffer 00007f3fa4000000\n");
  EXPECT_EQ(import.figures.front().at.at("memory"), text("gpu"));
  EXPECT_TRUE(has(left_out(import), "line 1: a line that is not read: Perftest doesn't supports CUDA"));
  EXPECT_TRUE(has(refusal("perftest", plain + " Completion with error at client\n"), "reports a failure"));
  EXPECT_TRUE(has(refusal("perftest", plain + plain), "a second run begins"));
}

TEST(ImportPerftestForms, settings_and_columns_of_a_newer_version_are_listed) {
  const auto import =
      taken("perftest", std::string("                    RDMA_Write BW Test\n Warp drive : ON\n"
                                    " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   "
                                    "MsgRate[Mpps]   BW Port1[MiB/sec]\n 64 1000 3.00 2.00 0.5 1.00\n"));
  EXPECT_EQ(value(import, "bandwidth", "mean", kNothing), 2.0 * (1 << 20));
  EXPECT_TRUE(has(left_out(import), "a setting that is not known: Warp drive : ON")) << left_out(import);
  EXPECT_TRUE(has(left_out(import), "the column 'BW Port1[MiB/sec]'")) << left_out(import);
}

// -------------------------------------------------------------------------------------------------------- nvbandwidth

TEST(ImportNvbandwidthForms, options_of_the_command_make_the_statistic_and_the_size) {
  const std::string output = recorded("nvbandwidth_0.7.json");
  const Values cell{{"test", text("host_to_device_memcpy_ce")}, {"column", whole(0)}};
  EXPECT_EQ(value(taken("nvbandwidth", output, "nvbandwidth -j -m"), "bandwidth", "mean", cell), 55.63e9);
  Values sized = cell;
  sized["size"] = whole(64 << 20);
  EXPECT_EQ(value(taken("nvbandwidth", output, "nvbandwidth -b 64 -j"), "bandwidth", "median", sized), 55.63e9);
  EXPECT_TRUE(has(left_out(taken("nvbandwidth", output)), "512 MiB and medians, unless --command has -b or -m"));
}

}  // namespace
}  // namespace assay::imports
