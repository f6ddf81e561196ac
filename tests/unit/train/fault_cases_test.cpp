// Every fault in every part of a step, of three divisions: 45 recoveries and 15 slow ranks. It takes minutes.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::train {
namespace {

struct Division {
  const char* name;
  std::vector<std::string> words;
};

class FaultCases : public ::testing::TestWithParam<Division> {};

TEST_P(FaultCases, all_go_on_with_the_bits_of_the_run_without_faults) {
  std::vector<std::string> words = {"--seq=16", "--micro-batch=1", "--local=/tmp"};
  words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
  const Record record = record_of(probe_file("fault_resume"), words);
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
  EXPECT_EQ(sum_of(record, "false_losses"), 0);
  EXPECT_EQ(std::ranges::find(record.measurements, "mttr", &Measurement::metric)->samples.size(), 15U);
}

INSTANTIATE_TEST_SUITE_P(
    of, FaultCases,
    ::testing::Values(Division{"replicas", {"--ranks-per-node=3"}},
                      Division{"tensors_and_replicas_with_a_sharded_optimizer",
                               {"--ranks-per-node=4", "--tp=2", "--zero=1", "--data=gaussian"}},
                      Division{"layers", {"--ranks-per-node=2", "--pp=2", "--micro-batches=2", "--overlap=none"}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay::train
