// What is refused of other tools' outputs, with its place; and that an import is refused wherever a measurement is due.
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "probes/core/record_reader.h"
#include "tests/unit/fixture.h"
#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

/// A change of a recorded output, and what its refusal must say.
struct Flaw {
  const char* tool;
  const char* output;
  const char* from;
  const char* to;
  const char* words;
};

class ImportFlaw : public testing::TestWithParam<Flaw> {};

TEST_P(ImportFlaw, is_refused_with_its_place) {
  const Flaw& flaw = GetParam();
  const std::string said = refusal(flaw.tool, changed(recorded(flaw.output), flaw.from, flaw.to), "ib_write_bw");
  EXPECT_NE(said.find(flaw.words), std::string::npos) << said;
  EXPECT_TRUE(said.starts_with("given.txt")) << said;
}

constexpr Flaw kFlaws[] = {
    {"nccl-tests", "nccl_tests_2.18.txt", "# Avg bus bandwidth", "# Avg", "'# Avg bus bandwidth' is missing"},
    {"nccl-tests", "nccl_tests_2.18.txt", "  163.20      0", "  163.20", "line 14: 12 columns, the heading has 13"},
    {"nccl-tests", "nccl_tests_2.18.txt", " 163.20", " 16x.20",
     "line 14: '16x.20' is not a number, expected the busbw"},
    {"nccl-tests", "nccl_tests_2.18.txt", "(GB/s)", "(Gb/s)", "line 12: the units are not those of the columns"},
    {"nccl-tests", "nccl_tests_2.18.txt", "out-of-place", "out of place",
     "line 11: 2 groups of figures, but the line above names 0 places"},
    {"nccl-tests", "nccl_tests_2.18.txt", "1542.0", "-1542.0", "line 14: the time is negative"},
    {"nccl-tests", "nccl_tests.json", "\"out_of_bounds\"", "\"bounds\"", "out_of_bounds: is missing"},
    {"nccl-tests", "nccl_tests.json", "\"bus_bw\":12.730000", "\"bus_bw\":true",
     "results[0].out_of_place.bus_bw: is not a number"},
    {"perftest", "perftest_bw_gbits.txt", "BW average[Gb/sec]", "BW average[furlongs]",
     "line 24: the bandwidth has no known unit"},
    {"perftest", "perftest_bw_gbits.txt", "0.00               392.40", "0.00392.40",
     "line 25: 4 columns, the heading has 5"},
    {"perftest", "perftest_bw_gbits.txt", "RDMA_Write BW Test", "Warp Test", "line 24: no title above says which test"},
    {"perftest", "perftest_bw.json", "\"MsgSize\": 65536,", "", "results: has no 'MsgSize'"},
    {"perftest", "perftest_bw.json", "0.747681", "0.747681,", "document: line 27"},
    {"nvbandwidth", "nvbandwidth_0.7.json", "\"git_version\" : \"v0.7\"", "\"error\" : \"CUDA_ERROR_NOT_READY\"",
     "nvbandwidth.error: the tool failed"},
    {"nvbandwidth", "nvbandwidth_0.7.json", "[ \"786\", \"N/A\" ]", "[ \"786\" ]",
     "bandwidth_matrix[5]: is not a row as long as the others"},
    {"nvbandwidth", "nvbandwidth_0.7.json", "\"55.63\"", "55.63", "bandwidth_matrix[0][0]: is not a text"},
    {"nvbandwidth", "nvbandwidth_0.7.json", "\"55.63\"", "\"55.63 GB/s\"", "'55.63 GB/s' is not a number"},
    {"fio", "fio_3.33.json", "\"error\" : 0", "\"error\" : 5", "jobs[0].error: fio ended with error 5"},
    {"fio", "fio_3.33.json", "fio-3.33", "fio-2.21", "fio version: 'fio-2.21' is not fio 3"},
    {"fio", "fio_3.33.json", "\"iops\" : 270.270270", "\"iops\" : -1", "jobs[0].read.iops: the iops is negative"},
    {"osu", "osu_bw_7.5.txt", "Bandwidth (MB/s)", "Bandwidth (GB/s)",
     "line 4: 'Bandwidth (GB/s)' is not a known column"},
    {"osu", "osu_bw_7.5.txt", "11873.27", "11873.27 7", "line 6: 3 columns, the heading has 2"},
    {"osu", "osu_bw_7.5.txt", "# Datatype", "UCX  ERROR lost\n# Datatype",
     "line 3: reports a failure: 'UCX  ERROR lost'"},
};
INSTANTIATE_TEST_SUITE_P(, ImportFlaw, testing::ValuesIn(kFlaws));

TEST(ImportRefusal, a_file_that_is_cut_off_is_refused_whole_where_its_end_is_known) {
  EXPECT_NE(refusal("osu", "# OSU MPI Bandwidth Test v7.5\n# Size  Bandwidth (MB/s)\n1   2.0")
                .find("line 3: the last row: it has no end of line"),
            std::string::npos);
  EXPECT_NE(refusal("energy-table", "# category 2\nbegin,end,total_kwh,it_kwh\n2025-01-01,2025-02-01,8,7")
                .find("line 3: the last line has no end of line"),
            std::string::npos);
  const std::string nccl = recorded("nccl_tests_2.18.txt");
  EXPECT_NE(
      refusal("nccl-tests", nccl.substr(0, nccl.find("# Out of bounds"))).find("'# Avg bus bandwidth' is missing"),
      std::string::npos);
  const std::string fio = recorded("fio_3.33.json");
  EXPECT_NE(refusal("fio", fio.substr(0, fio.size() / 2)), "imported");
}

TEST(ImportRefusal, an_output_without_a_figure_is_refused) {
  EXPECT_NE(refusal("osu", "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n1   0.00\n")
                .find("has no figure that can be imported"),
            std::string::npos);
  EXPECT_NE(refusal("perftest", "\n").find("has no table of results"), std::string::npos);
}

TEST(ImportRefusal, a_remark_without_words_is_no_head) {
  EXPECT_NE(refusal("osu", "# OSU MPI Bandwidth Test v7.5\n#\n1   2.00\n").find("has no table below a title"),
            std::string::npos);
}

TEST(ImportRefusal, a_form_or_tool_that_is_not_known_gets_a_hint) {
  EXPECT_NE(refusal("fio", "t: (g=0): rw=read\n").find("--output-format=json+"), std::string::npos);
  EXPECT_NE(refusal("nvbandwidth", "nvbandwidth Version: v0.8\n").find("--json"), std::string::npos);
  EXPECT_NE(refusal("nccl-test", "x").find("did you mean 'nccl-tests'?"), std::string::npos);
}

TEST(ImportedRecord, is_refused_by_the_reader_of_records_and_its_cell_is_never_a_pass) {
  const std::string text = judge::import_text(import_of("osu", "osu_barrier.txt"));
  const auto record = read_record(text, description());
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().text().find("imported from another tool's output"), std::string::npos)
      << record.error().text();

  MemoryRun run({R"({"limit": {"at_least": 1, "unit": "B/s"}})"});
  run.attempt(0, "exited", text);
  const judge::Verdict verdict = judge::judge(run.plan, "", run.journal, run.reader());
  EXPECT_EQ(verdict.overall, judge::Overall::incomplete);
  EXPECT_EQ(verdict.results.front().outcome, judge::Outcome::error);
  EXPECT_NE(verdict.results.front().reason.find("imported from another tool's output"), std::string::npos);
}

TEST(ImportedRecord, is_known_by_its_beginning_however_it_is_laid_out) {
  EXPECT_TRUE(judge::is_imported(judge::import_text(import_of("osu", "osu_barrier.txt"))));
  EXPECT_TRUE(judge::is_imported("\n{\n  \"schema\": \"assay.imported/2\","));
  EXPECT_TRUE(judge::is_imported("\xEF\xBB\xBF{\"schema\":\"assay.imported/1\""));
  EXPECT_TRUE(judge::is_imported(R"({"source": {"tool": "fio"}, "sequence": 0, "schema": "assay.imported/1"})"));
  EXPECT_TRUE(judge::is_imported(R"({"\u0073chema":"\u0061ssay.imported\/1"})"));
  EXPECT_TRUE(judge::is_imported(R"({"schema":"assay\u002eimported\u002F1"})"));
  EXPECT_FALSE(judge::is_imported(R"({"reason":"\"schema\":\"assay.imported/1\""})")) << "words of a node";
  EXPECT_FALSE(judge::is_imported(R"({"reason":"\u0022schema\u0022:\u0022assay.imported/1"})")) << "the same";
  EXPECT_FALSE(judge::is_imported(R"({"schema":"assay.record/1","sequence":0,"note":"assay.imported/1"})"));
  EXPECT_FALSE(judge::is_imported(""));
}

}  // namespace
}  // namespace assay::imports
