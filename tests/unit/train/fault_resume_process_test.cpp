// fault_resume as processes on this machine's loopback: lost ranks are replaced, and what goes on is right in every
// bit.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"

namespace assay::train::fault_resume_process_test {
namespace {

const std::string kFaultResume = probe_file("fault_resume");
const std::vector<std::string> kShort = {"--seq=16", "--micro-batch=1", "--save-every=2", "--local=/tmp"};

Record ended(const std::vector<std::string>& more) { return record_of(kFaultResume, with(kShort, more)); }

void expect_resumed(const Record& record, std::size_t faults) {
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(sum_of(record, "mismatches"), 0) << record.notes.size();
  EXPECT_EQ(sum_of(record, "false_losses"), 0);
  double parts_s = 0;
  for (const char* part : {"detect_time", "abort_time", "rebuild_time", "restore_time", "recompute_time"})
    parts_s += sum_of(record, part);
  EXPECT_NEAR(sum_of(record, "mttr"), parts_s, 1e-6);
  const auto repairs = std::ranges::find(record.measurements, "mttr", &Measurement::metric);
  ASSERT_EQ(repairs != record.measurements.end() ? repairs->samples.size() : 0, faults);
}

std::string restored_from(const Record& record) {
  const auto found = std::ranges::find(record.conditions, "restored_from", &Condition::name);
  return found == record.conditions.end() ? "" : std::get<std::string>(found->value);
}

TEST(FaultResume, goes_on_bit_by_bit_after_ranks_are_killed_hang_and_are_cut_off_and_leaves_a_slow_one_alone) {
  const Record record = ended({"--ranks-per-node=3", "--phases=reduce", "--job-mtbf=10000s"});
  expect_resumed(record, 3);
  EXPECT_EQ(restored_from(record), "own 6, memory 3");
  EXPECT_GT(sum_of(record, "ettr"), 0.9);
}

TEST(FaultResume, uses_the_next_copy_where_a_bit_of_the_nearest_is_turned_and_records_it) {
  const Record record = ended({"--faults=kill", "--phases=save", "--corrupt=memory", "--data=gaussian"});
  expect_resumed(record, 1);
  EXPECT_EQ(restored_from(record), "own 1, local 1");
  EXPECT_EQ(sum_of(record, "refused_states"), 1);
}

TEST(FaultResume, uses_the_shared_copy_where_no_nearer_one_is_right) {
  const Record record = ended({"--faults=kill", "--phases=forward", "--corrupt=local", "--shared=/tmp"});
  expect_resumed(record, 1);
  EXPECT_EQ(restored_from(record), "own 1, shared 1");
}

TEST(FaultResume, ends_where_no_copy_is_right) {
  EXPECT_EQ(ended({"--faults=kill", "--phases=forward", "--corrupt=local"}).end.reason,
            "the state of rank 0 after 2 steps is nowhere left");
}

TEST(FaultResume, without_a_spare_ends_and_names_the_rank) {
  EXPECT_EQ(ended({"--faults=kill", "--phases=forward", "--spares=0"}).end.reason,
            "no spare is left for rank 0 (node 0, process 0), which was killed by signal 9 before it answered");
}

TEST(FaultResume, of_two_nodes_replaces_the_rank_of_either) {
  const auto nodes = run_nodes(
      kFaultResume, 2,
      with(kShort, {"--path=loopback", "--ranks-per-node=1", "--faults=kill", "--phases=backward", "--rounds=2"}));
  for (const auto& output : nodes) ASSERT_EQ(output.exit_code, 0) << output.out;
  expect_resumed(record_in(kFaultResume, nodes[0]), 2);
  EXPECT_TRUE(record_in(kFaultResume, nodes[1]).measurements.empty());
}

void expect_refused(const std::vector<std::string>& more, const std::string& part) {
  const Record record = record_of(kFaultResume, more);
  EXPECT_TRUE(record.measurements.empty());
  EXPECT_NE(record.end.reason.find(part), std::string::npos) << record.end.reason;
}

TEST(FaultResume, refuses_what_cannot_be_run) {
  expect_refused({"--ranks-per-node=1"},
                 "the loss of a single rank is noticed by no other; give at least 2 on one node");
  expect_refused({"--save-every=1"}, "save_every: 1 is not from 2 to 1000");
  expect_refused({"--heartbeat=1ms"}, "heartbeat: not from 10ms to 60s");
  expect_refused({"--missed=1"}, "missed: 1 is not from 2 to 100");
  EXPECT_EQ(run_probe({kFaultResume, "--faults=other"}).exit_code, 2);
}

TEST(FaultResumeRank, of_another_parent_ends_at_once) {
  EXPECT_EQ(run_probe({program_file("fault_resume_rank")}).exit_code, 1);
}

}  // namespace
}  // namespace assay::train::fault_resume_process_test
