// load_bank as a process of one rank: what its record says of the load, and what it says where GPUs cannot be loaded.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/probe_process.h"

namespace assay {
namespace {

std::vector<std::string> short_load(std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"--hold", "4s", "--ramp", "500ms", "--grow-hold", "1s"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

TEST(load_bank, a_load_of_processors_says_what_multiplies) {
  const Record record = record_of(LOAD_BANK, short_load({"--threads", "2", "--shape", "soak"}));
  if (record.end.status == Status::skip) GTEST_SKIP() << record.end.reason;
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "engine", node_of(record)), Value{std::string("cpu_gemm")});
  EXPECT_EQ(value_of(record, "threads", node_of(record)), Value{std::int64_t{2}});
  EXPECT_FALSE(samples_of(record, "total_rate", node_of(record)).empty());
}

TEST(load_bank, gpus_that_cannot_be_loaded_are_never_replaced_by_processors) {
  const Record record = record_of(LOAD_BANK, short_load({"--engine", "gpu", "--gpus", "GPU-no-such"}));
  ASSERT_EQ(record.end.status, Status::skip) << record.end.reason;
  EXPECT_TRUE(record.measurements.empty());
}

}  // namespace
}  // namespace assay
