// train_soak as processes of this machine: what is interrupted is counted by its class, and the soak goes on.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"
#include "tests/unit/rank_processes.h"

namespace assay::train::train_soak_process_test {
namespace {

const std::string kTrainSoak = probe_file("train_soak");
const std::vector<std::string> kShort = {"--quick", "--window=100ms", "--seq=16", "--micro-batch=1"};

Record read(const ProbeOutput& output) { return record_in(kTrainSoak, output); }

std::vector<double> samples(const Record& record, const std::string& metric, const std::string& of_class = "") {
  for (const auto& one : record.measurements) {
    if (one.metric == metric && (of_class.empty() || one.at.at("class") == Value(of_class))) return one.samples;
  }
  return {};
}

std::string notes(const Record& record) {
  std::string all;
  for (const auto& note : record.notes) all += note + "\n";
  return all;
}

/// Runs a soak of 6 s; once the first window has been measured, one rank gets `signal`.
Record struck(int signal, const std::vector<std::string>& more) {
  bool struck = false;
  const auto words = with(with({kTrainSoak}, kShort), with({"--load-least=6s", "--segment=60s"}, more));
  return read(run_and_hear(words, [&](const std::string& out, pid_t leader) {
    if (struck || out.find("start_time") == std::string::npos) return;
    struck = true;
    (void)kill(ranks_of(leader, "train_step_rank").back(), signal);
  }));
}

TEST(TrainSoak, undisturbed_has_no_interruption_and_a_bound_of_a_third_of_its_time) {
  const Record record = read(run_probe(with(with({kTrainSoak}, kShort), {"--load-least=10s"})));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  for (const char* how : {"ended", "silent", "error"})
    EXPECT_EQ(samples(record, "interruptions", how), std::vector<double>{0});
  EXPECT_EQ(samples(record, "mismatches"), std::vector<double>{0}) << notes(record);
  EXPECT_NEAR(samples(record, "mtbf_bound").at(0) * 2.9957, samples(record, "load_time").at(0), 1e-3);
  EXPECT_NEAR(samples(record, "load_share").at(0) * 10, samples(record, "load_time").at(0), 1e-3);
  ASSERT_GE(samples(record, "step_time").size(), 10U);
  EXPECT_GE(samples(record, "step_growth_bound").at(0), samples(record, "step_growth").at(0));
}

TEST(TrainSoak, goes_on_after_a_rank_was_killed_and_counts_it) {
  const Record record = struck(SIGKILL, {});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples(record, "interruptions", "ended"), std::vector<double>{1}) << notes(record);
  EXPECT_EQ(samples(record, "interruptions", "silent"), std::vector<double>{0});
  EXPECT_NEAR(samples(record, "mtbf_bound").at(0) * 4.7439, samples(record, "load_time").at(0), 1e-3);
  EXPECT_NE(notes(record).find("was killed by signal 9 before it answered"), std::string::npos) << notes(record);
}

TEST(TrainSoak, goes_on_after_a_rank_hung_and_counts_it) {
  const Record record = struck(SIGSTOP, {"--silence=1s"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples(record, "interruptions", "silent"), std::vector<double>{1}) << notes(record);
  EXPECT_NE(notes(record).find("is stopped by a signal, and was for 1 s"), std::string::npos) << notes(record);
}

TEST(TrainSoak, refuses_what_is_out_of_range_and_replicas_that_are_alone) {
  const auto reason = [](const std::vector<std::string>& more) {
    return read(run_probe(with(with({kTrainSoak}, kShort), more))).end.reason;
  };
  EXPECT_NE(reason({"--load-least=0s"}).find("load_least: 0 s is not above 0"), std::string::npos);
  EXPECT_NE(reason({"--ranks-per-node=2", "--tp=2"}).find("data: replicated needs two replicas"), std::string::npos);
}

}  // namespace
}  // namespace assay::train::train_soak_process_test
