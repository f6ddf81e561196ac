// moe_dispatch as processes on this machine's loopback: all families right, what is local is no network, refusals
// named.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"
#include "workloads/inference/moe_job.h"

namespace assay::inference::moe_dispatch_process_test {
namespace {

const std::string kMoeDispatch = probe_file("moe_dispatch");
const std::vector<std::string> kShort = {"--rounds=1", "--tokens=16", "--families=uniform,zipf,hot_rank,burst"};

std::vector<std::string> families_with(const Record& record, const std::string& metric) {
  std::vector<std::string> families;
  for (const auto& one : record.measurements) {
    if (one.metric == metric) families.push_back(std::get<std::string>(one.at.at("family")));
  }
  return families;
}

TEST(MoeDispatch, of_four_ranks_is_right_in_every_family_and_has_no_rate_of_forced_routes) {
  const Record record = record_of(kMoeDispatch, {"--rounds=1", "--tokens=16", "--ranks-per-node=4"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0);
  EXPECT_TRUE(record.notes.empty());
  EXPECT_EQ(families_with(record, "step_time").size(), 10U);
  auto rates = families_with(record, "tokens_rate");
  EXPECT_EQ(rates.size(), 8U);
  EXPECT_EQ(std::ranges::count(rates, "balanced") + std::ranges::count(rates, "spread"), 0);
  EXPECT_EQ(families_with(record, "loopback_rate"), rates);
  EXPECT_EQ(count_of(record, "network_rate") + count_of(record, "network_bytes"), 0U);
  EXPECT_EQ(count_of(record, "skew_penalty"), 9U);
  EXPECT_EQ(count_of(record, "edge_time"), 6U);
  EXPECT_EQ(count_of(record, "edge_share"), 6U);
  EXPECT_EQ(count_of(record, "self_share"), 4U);
}

TEST(MoeDispatch, of_two_nodes_counts_what_stays_on_a_node_apart) {
  const auto nodes =
      run_nodes(kMoeDispatch, 2, with(kShort, {"--path=loopback", "--ranks-per-node=2", "--copies=expert"}));
  for (const auto& output : nodes) ASSERT_EQ(output.exit_code, 0) << output.out;
  const Record first = record_in(kMoeDispatch, nodes[0]);
  EXPECT_EQ(sum_of(first, "mismatches"), 0);
  EXPECT_TRUE(record_in(kMoeDispatch, nodes[1]).measurements.empty());
  for (const auto& one : first.measurements) {
    if (one.metric != "node_share" || one.at.at("family") != Value(std::string("spread"))) continue;
    EXPECT_DOUBLE_EQ(one.samples.at(0), 0.25);  // every rank has a quarter
  }
}

TEST(MoeDispatch, of_one_rank_is_skipped_and_of_two_nodes_that_are_one_machine_is_no_fabric) {
  EXPECT_EQ(run_probe({kMoeDispatch}).exit_code, 77);
  for (const auto& output : run_nodes(kMoeDispatch, 2, with(kShort, {"--path=fabric", "--ranks-per-node=1"}))) {
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_NE(record_in(kMoeDispatch, output).end.reason.find("ranks 0 and 1 of two nodes run on one machine"),
              std::string::npos);
  }
}

void expect_refused(const std::vector<std::string>& more, const std::string& part) {
  const Record record = record_of(kMoeDispatch, with({"--ranks-per-node=2"}, more));
  EXPECT_TRUE(record.measurements.empty());
  EXPECT_NE(record.end.reason.find(part), std::string::npos) << record.end.reason;
}

TEST(MoeDispatch, refuses_what_cannot_be_run) {
  expect_refused({"--model=tiny-dense"}, "model: 'tiny-dense' has no experts; give one that has, such as tiny-moe");
  expect_refused({"--families=even"}, "families: 'even' is none of balanced");
  expect_refused({"--dispatch-element=3"}, "dispatch_element: 3 is none of 1, 2 and 4");
  expect_refused({"--tokens=0"}, "tokens: 0 is not from 1 to 65536");
  expect_refused({"--model=deepseek-v3", "--experts-per-rank=2"},
                 "experts_per_rank: 8 experts of each token, of 4; at most 4 are run");
  const Record record = record_of(kMoeDispatch, {"--ranks-per-node=3"});
  EXPECT_NE(record.end.reason.find("3 ranks do not divide 8 experts; the nearest that do: 2 and 4"), std::string::npos)
      << record.end.reason;
  EXPECT_EQ(run_probe({kMoeDispatch, "--copies=none"}).exit_code, 2);
}

TEST(MoeDispatch, of_an_engine_that_is_not_run_says_which_is) {
  expect_refused({"--engine=nccl-device", "--interface=eth1"}, "interface: engine nccl takes its ports from");
  expect_refused({"--engine=nccl", "--interface=eth1"}, "interface: engine nccl takes its ports from NCCL_IB_HCA");
  EXPECT_EQ(run_probe({kMoeDispatch, "--engine=mpi"}).exit_code, 2);
}

// Where no driver is, the machine says so; where one is, this asks for a GPU that is not there; a build without CUDA
// says that.
TEST(MoeDispatch, without_the_gpu_is_skipped_with_a_reason) {
  for (const char* engine : {"--engine=nccl", "--engine=nccl-device"}) {
    const auto output = run_probe({kMoeDispatch, engine, "--device=GPU-00000000-0000-0000-0000-000000000000"});
    EXPECT_EQ(output.exit_code, 77);
    EXPECT_TRUE(record_in(kMoeDispatch, output).measurements.empty());
    const std::string reason = record_in(kMoeDispatch, output).end.reason;
    EXPECT_TRUE(reason.find("is not here") != std::string::npos || reason.starts_with("no NVIDIA GPU") ||
                reason.starts_with("engine: this program was built without CUDA"))
        << reason;
  }
}

TEST(MoeDispatch, as_the_rank_of_a_gpu_of_another_parent_ends_at_once) {
  const ExchangeJob job{.routing = {.tokens = 2, .experts = 2, .top_k = 1, .ranks = 2}, .hidden = 16};
  auto words = moe_arguments({.job = job, .address = "GPU-0"});
  ASSERT_TRUE(moe_start(words));
  words.at(0) = kMoeDispatch;
  words.at(1) = "1";
  const auto alone = run_probe(words);
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_EQ(alone.out, "");
}

TEST(MoeDispatch, of_a_node_that_stops_ends_everywhere_and_names_its_rank) {
  const auto nodes = run_nodes(kMoeDispatch, 2, {"--path=loopback", "--rounds=1000", "--ranks-per-node=1"}, 2);
  EXPECT_EQ(nodes[0].exit_code, 1);
  const Record record = record_in(kMoeDispatch, nodes[0]);
  EXPECT_NE(record.end.reason.find("rank 1: stopped by a signal"), std::string::npos) << record.end.reason;
}

TEST(MoeDispatchRank, of_another_parent_ends_at_once) {
  EXPECT_EQ(run_probe({program_file("moe_dispatch_rank")}).exit_code, 1);
  EXPECT_EQ(run_probe({program_file("moe_dispatch_rank"), "1", "{}"}).exit_code, 1);
}

}  // namespace
}  // namespace assay::inference::moe_dispatch_process_test
