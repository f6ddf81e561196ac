// kv_transfer as two processes on this machine's loopback.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"

namespace assay::inference::kv_transfer_process_test {
namespace {

const std::string kKvTransfer = probe_file("kv_transfer");
const std::vector<std::string> kShort = {"--tokens=64", "--layers-run=4", "--transfers=2"};

std::optional<Value> condition(const Record& record, const std::string& name) {
  for (const auto& one : record.conditions) {
    if (one.name == name) return one.value;
  }
  return std::nullopt;
}

TEST(KvTransfer, over_loopback_is_right_and_has_figures_of_its_own) {
  for (const char* layout : {"--layout=layer", "--layout=page"}) {
    const auto ranks = run_nodes(kKvTransfer, 2, with(kShort, {"--path=loopback", layout}));
    for (const auto& output : ranks) ASSERT_EQ(output.exit_code, 0) << output.out;
    const Record first = record_in(kKvTransfer, ranks[0]);
    EXPECT_EQ(sum_of(first, "mismatches"), 0);
    for (const char* metric : {"loopback_bandwidth", "loopback_time", "loopback_first_block", "loopback_paging_cost"})
      EXPECT_EQ(count_of(first, metric), 1U) << metric;
    EXPECT_EQ(count_of(first, "forward_bandwidth") + count_of(first, "backward_time"), 0U);
    EXPECT_EQ(condition(first, "bytes_per_token"), Value(std::int64_t{4 * 2 * 8 * 128 * 2}));
    EXPECT_TRUE(record_in(kKvTransfer, ranks[1]).measurements.empty());
  }
}

TEST(KvTransfer, between_processes_of_one_machine_is_no_fabric) {
  for (const auto& output : run_nodes(kKvTransfer, 2, with(kShort, {"--path=fabric"}))) {
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_NE(record_in(kKvTransfer, output).end.reason.find("one machine"), std::string::npos)
        << record_in(kKvTransfer, output).end.reason;
  }
}

TEST(KvTransfer, sends_the_whole_latent_to_each_rank_and_a_part_of_the_heads) {
  const auto heads = run_nodes(kKvTransfer, 2, with(kShort, {"--path=loopback", "--model=llama3-70b", "--tp=8"}));
  EXPECT_EQ(condition(record_in(kKvTransfer, heads[0]), "bytes_per_token"), Value(std::int64_t{4 * 2 * 128 * 2}));
  const auto latent = run_nodes(kKvTransfer, 2, with(kShort, {"--path=loopback", "--model=deepseek-v3", "--tp=8"}));
  EXPECT_EQ(condition(record_in(kKvTransfer, latent[0]), "bytes_per_token"), Value(std::int64_t{4 * 576 * 2}));
}

void expect_refused(const std::vector<std::string>& more, const std::string& part) {
  const Record record = record_of(kKvTransfer, more);
  EXPECT_TRUE(record.measurements.empty());
  EXPECT_NE(record.end.reason.find(part), std::string::npos) << record.end.reason;
}

TEST(KvTransfer, refuses_what_does_not_divide_or_fit_and_skips_one_rank) {
  expect_refused({"--tokens=100"}, "tokens: 100 is no multiple of a page of 16; the nearest that are: 96 and 112");
  expect_refused({"--tp=3"}, "tp: 3 does not divide 8 kv heads; the nearest that does: 2");
  expect_refused({"--element=3"}, "element: 3 is none of 1, 2 and 4");
  expect_refused({"--tokens=4194304"}, "; the nearest that fits: ");
  EXPECT_EQ(run_probe({kKvTransfer}).exit_code, 77);
}

}  // namespace
}  // namespace assay::inference::kv_transfer_process_test
