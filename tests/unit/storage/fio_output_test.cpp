// What fio 3.33 wrote, recorded once, and what it never wrote but might.
#include <gtest/gtest.h>

#include "probes/storage/fio_output.h"
#include "tests/unit/paths.h"

namespace assay::storage {
namespace {

std::string recorded(const std::string& name) { return *read_file(golden_file("fio/") + name); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string reason(const std::string& text, Direction direction = Direction::read) {
  const auto result = read_fio_output(text, direction, "output.json");
  return result ? "accepted" : result.error().text();
}

}  // namespace

TEST(fio_output, is_read_in_bytes_and_seconds) {
  const auto result = read_fio_output(recorded("read.json"), Direction::read, "read.json");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->version, "fio-3.33");
  EXPECT_EQ(result->engine, "libaio");
  EXPECT_TRUE(result->direct);
  EXPECT_DOUBLE_EQ(result->bandwidth, 87381333);  // bw_bytes; bw is 85333 KiB/s
  EXPECT_DOUBLE_EQ(result->iops, 21333.333333);
  EXPECT_EQ(result->completions, 256);
  EXPECT_EQ(result->moved.count, 1048576U);
  EXPECT_DOUBLE_EQ(result->latency_p50, 26240e-9);
  EXPECT_DOUBLE_EQ(result->latency_p99, 50944e-9);
  EXPECT_DOUBLE_EQ(result->latency_p999, 63232e-9);
  EXPECT_DOUBLE_EQ(result->latency_max, 63303e-9);
}

TEST(fio_output, warnings_before_the_object_are_skipped) {
  const std::string text = recorded("warned.json");
  ASSERT_TRUE(text.starts_with("note: both iodepth"));
  EXPECT_EQ(reason(text), "accepted");
}

TEST(fio_output, an_error_of_the_job_is_an_error) {
  EXPECT_NE(reason(recorded("failed.json")).find("jobs[0].error is 22 (Invalid argument)"), std::string::npos);
}

TEST(fio_output, missing_percentiles_are_an_error_and_named) {
  EXPECT_NE(reason(recorded("without_percentiles.json")).find("'/jobs/0/read/clat_ns/percentile/50.000000' is missing"),
            std::string::npos);
}

TEST(fio_output, percentiles_that_fio_3_1_repeats_unset_are_passed_over_and_no_other_key_may_repeat) {
  const std::string unset = R"("0.00" : 0, "0.00" : 0, "99.000000")";
  EXPECT_EQ(reason(replaced(recorded("read.json"), R"("99.000000")", unset)), "accepted");
  EXPECT_NE(reason(replaced(recorded("read.json"), R"("99.000000")", R"("50.000000" : 0, "99.000000")")), "accepted");
}

TEST(fio_output, every_truncation_is_an_error) {
  const std::string text = recorded("read.json");
  const auto whole = text.rfind('}');
  for (std::size_t size = 0; size <= whole; size += 97) EXPECT_NE(reason(text.substr(0, size)), "accepted") << size;
  EXPECT_NE(reason(text.substr(0, whole)), "accepted");
}

TEST(fio_output, a_missing_field_is_never_zero) {
  const std::string text = recorded("read.json");
  for (const char* field :
       {"\"bw_bytes\"", "\"iops\"", "\"total_ios\"", "\"io_bytes\"", "\"ioengine\"", "\"fio version\"", "\"error\""}) {
    EXPECT_NE(reason(replaced(text, field, "\"other\"")).find("is missing"), std::string::npos) << field;
  }
}

TEST(fio_output, numbers_as_text_and_negative_numbers_are_refused) {
  const std::string text = recorded("read.json");
  EXPECT_NE(reason(replaced(text, "\"bw_bytes\" : 87381333", "\"bw_bytes\" : \"87381333\"")).find("as a number"),
            std::string::npos);
  EXPECT_NE(reason(replaced(text, "\"bw_bytes\" : 87381333", "\"bw_bytes\" : -1")).find("as a number"),
            std::string::npos);
}

TEST(fio_output, a_run_without_completions_is_an_error) {
  EXPECT_NE(reason(recorded("read.json"), Direction::write), "accepted");
}

TEST(fio_output, text_without_an_object_is_an_error) {
  EXPECT_NE(reason("").find("0 bytes and no JSON object"), std::string::npos);
  EXPECT_NE(reason("fio: failed { early }\n").find("no JSON object"), std::string::npos);
}

TEST(fio_job_file, is_written_as_documented) {
  const FioJob job{.direction = Direction::write,
                   .random = true,
                   .block = {4096},
                   .depth = 16,
                   .jobs = 4,
                   .engine = "io_uring",
                   .file_size = {1 << 30},
                   .ramp = {0.1},
                   .runtime = {0.65}};
  EXPECT_EQ(job_file(job),
            "[sample]\nfilename=data\nsize=1073741824\nrw=randwrite\nbs=4096\niodepth=16\nnumjobs=4\nioengine=io_"
            "uring\ndirect=1\n"
            "thread=1\ngroup_reporting=1\ninvalidate=1\nrefill_buffers=1\nbuffer_compress_percentage=0\nrandrepeat=0\n"
            "percentile_list=50:99:99.9\nnorandommap=1\ntime_based=1\nruntime=650000us\nramp_time=100000us\n");
}

TEST(fio_job_file, a_layout_goes_once_over_the_file_and_ends_with_fsync) {
  const std::string text = job_file({.direction = Direction::write, .engine = "libaio", .file_size = {4096}});
  EXPECT_NE(text.find("rw=write\n"), std::string::npos);
  EXPECT_NE(text.find("end_fsync=1\n"), std::string::npos);
  EXPECT_EQ(text.find("time_based"), std::string::npos);
}

TEST(fio_version, is_told_by_its_major_number) {
  EXPECT_EQ(fio_major_version("fio-3.33"), 3);
  EXPECT_EQ(fio_major_version("fio-2.21-12-gabc"), 2);
  for (const char* bad : {"", "fio", "fio-", "fio-x.1", "3.33", "fio-3"})
    EXPECT_FALSE(fio_major_version(bad).has_value()) << bad;
}

}  // namespace assay::storage
