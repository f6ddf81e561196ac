// train_step as processes on this machine's loopback: every division exact, every refusal named.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"

namespace assay::train::train_step_process_test {
namespace {

const std::string kTrainStep = probe_file("train_step");
const std::vector<std::string> kShort = {"--quick",          "--steps=6", "--block=2",
                                         "--warmup-steps=1", "--seq=16",  "--micro-batch=1"};

Record read(const ProbeOutput& output) { return record_in(kTrainStep, output); }

Record ended(const std::vector<std::string>& more) { return read(run_probe(with(with({kTrainStep}, kShort), more))); }

std::vector<const Measurement*> all_of(const Record& record, const std::string& metric) {
  std::vector<const Measurement*> all;
  for (const auto& one : record.measurements) {
    if (one.metric == metric) all.push_back(&one);
  }
  return all;
}

void expect_exact(const std::vector<std::string>& more, std::size_t ranks) {
  const Record record = ended(more);
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(all_of(record, "mismatches").at(0)->samples, std::vector<double>{0});
  EXPECT_TRUE(record.notes.empty());
  EXPECT_EQ(all_of(record, "step_time").at(0)->samples.size(), 6U);
  EXPECT_EQ(all_of(record, "self_time").size(), ranks);
}

TEST(TrainStep, divided_by_tensors_is_exact) { expect_exact({"--ranks-per-node=2", "--tp=2"}, 2); }
TEST(TrainStep, divided_by_layers_is_exact) { expect_exact({"--ranks-per-node=2", "--pp=2", "--micro-batches=3"}, 2); }
TEST(TrainStep, divided_by_batch_with_sharded_optimizer_is_exact) {
  expect_exact({"--ranks-per-node=4", "--tp=2", "--zero=1"}, 4);
}
TEST(TrainStep, with_replicated_data_has_replicas_that_agree) {
  expect_exact({"--ranks-per-node=3", "--data=replicated", "--overlap=none"}, 3);
}

TEST(TrainStep, of_one_rank_has_no_communication_and_no_overlap) {
  const Record record = ended({});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  for (const char* metric : {"comm_time", "exposed_comm", "overlap", "self_time", "last_share"})
    EXPECT_TRUE(all_of(record, metric).empty()) << metric;
  const double step_s = all_of(record, "step_time").at(0)->samples.at(2);
  EXPECT_DOUBLE_EQ(all_of(record, "tokens_rate").at(0)->samples.at(2), 16 / step_s);
}

TEST(TrainStep, in_exact_arithmetic_yields_no_rate) {
  const Record record = ended({"--data=ring"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_TRUE(all_of(record, "tokens_rate").empty());
  EXPECT_TRUE(all_of(record, "model_flop_rate").empty());
  EXPECT_EQ(all_of(record, "step_time").size(), 1U);
}

// Compared with one rank in exact arithmetic, before and after.
TEST(TrainStep, of_experts_and_a_divided_sequence_is_exact_and_says_how_it_routes) {
  const auto output =
      run_probe(with(with({kTrainStep}, kShort), {"--model=tiny-moe", "--ranks-per-node=2", "--cp=2", "--ep=2"}));
  ASSERT_EQ(output.exit_code, 0) << output.out;
  const Record record = read(output);
  EXPECT_EQ(all_of(record, "mismatches").at(0)->samples, std::vector<double>{0});
  const auto routing = std::ranges::find(record.conditions, std::string("routing"), &Condition::name);
  ASSERT_NE(routing, record.conditions.end());
  EXPECT_EQ(routing->value, Value("by_place"));
}

std::vector<ProbeOutput> two_nodes(const std::vector<std::string>& more, unsigned stop_s = 0) {
  return run_nodes(kTrainStep, 2, more, stop_s);
}

TEST(TrainStep, of_two_nodes_has_figures_of_the_group_and_of_each_rank) {
  const auto nodes =
      two_nodes(with(kShort, {"--path=loopback", "--ranks-per-node=2", "--tp=2", "--project-ranks=4096"}));
  for (const auto& output : nodes) ASSERT_EQ(output.exit_code, 0) << output.out;
  const Record first = read(nodes[0]);
  EXPECT_EQ(all_of(first, "mismatches").at(0)->samples, std::vector<double>{0});
  EXPECT_EQ(all_of(first, "step_time").at(0)->subject.kind, "group");
  EXPECT_EQ(all_of(first, "self_share").size(), 4U);
  EXPECT_EQ(all_of(first, "edge_time").size(), 2U);
  EXPECT_EQ(all_of(first, "edge_share").at(0)->samples.size(), 3U);
  EXPECT_EQ(all_of(first, "group_share").size(), 2U);
  EXPECT_GT(all_of(first, "tail_share_projected_bound").at(0)->samples.at(0), 0.999);
  EXPECT_TRUE(read(nodes[1]).measurements.empty());
}

TEST(TrainStep, of_two_nodes_that_are_one_machine_is_no_fabric) {
  for (const auto& output : two_nodes(with(kShort, {"--path=fabric"}))) {
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_NE(read(output).end.reason.find("ranks 0 and 1 of two nodes run on one machine"), std::string::npos);
  }
}

TEST(TrainStep, of_a_node_that_stops_ends_everywhere_and_names_its_rank) {
  const auto nodes = two_nodes({"--path=loopback", "--steps=1000000", "--block=1000"}, 2);
  EXPECT_EQ(nodes[0].exit_code, 1);
  EXPECT_NE(read(nodes[0]).end.reason.find("rank 1: stopped by a signal"), std::string::npos)
      << read(nodes[0]).end.reason;
}

void expect_refused(const std::vector<std::string>& more, const std::string& part) {
  const Record record = read(run_probe(with({kTrainStep, "--quick"}, more)));
  EXPECT_TRUE(record.measurements.empty());
  EXPECT_NE(record.end.reason.find(part), std::string::npos) << record.end.reason;
}

TEST(TrainStep, refuses_plans_with_the_nearest_that_would_do) {
  expect_refused({"--tp=3", "--ranks-per-node=3"}, "tp: 3 does not divide 4 heads; the nearest that does: 2");
  expect_refused({"--tp=2", "--ranks-per-node=3"},
                 "3 ranks are no multiple of tp 2 x cp 1 x pp 1; the nearest that are: 2 and 4");
  expect_refused({"--pp=2", "--ranks-per-node=2", "--layers-run=1"}, "pp: 2 x 1 pieces do not divide 1 layers");
  expect_refused({"--model=llama3-405b", "--layers-run=126"}, "layers_run: even 1 layers need");
}

TEST(TrainStep, refuses_what_its_engine_does_not_run) {
  expect_refused({"--model=deepseek-v3", "--layers-run=1"}, "model: latent attention is not run by this engine");
  expect_refused({"--zero=2", "--ranks-per-node=2"}, "zero: sharded gradients and weights are not run by this engine");
  expect_refused({"--cp=2", "--ranks-per-node=2", "--seq=126"}, "cp: 2 x 2 pieces do not divide 126 tokens");
  expect_refused({"--model=no-such"}, "model: 'no-such' is none of llama3-8b");
  expect_refused({"--project-ranks=1", "--ranks-per-node=2"}, "project_ranks: 1 is not from 2 to 1048576");
  expect_refused({"--steps=1"}, "steps: 1 is not from 5 to 1000000");
  expect_refused({"--ranks-per-node=0"}, "ranks_per_node: 0 is not from 1 to 256");
  EXPECT_EQ(run_probe({kTrainStep, "--data=constant"}).exit_code, 2);
}

TEST(TrainStepRank, of_another_parent_ends_at_once) {
  EXPECT_EQ(run_probe({program_file("train_step_rank")}).exit_code, 1);
  EXPECT_EQ(run_probe({program_file("train_step_rank"), "1", "{}"}).exit_code, 1);
}

}  // namespace
}  // namespace assay::train::train_step_process_test
