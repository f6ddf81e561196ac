// A rank that a signal stops, at any moment from its start to its end: whoever waits for it ends within a limit. It
// takes minutes.
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"
#include "tests/unit/rank_processes.h"

namespace assay::train {
namespace {

struct Subject {
  const char* name;
  std::string probe, program;
  std::vector<std::string> words;
  double length_s;  ///< of a run; moments lie within it
  int nodes = 1;
};

class StoppedAnywhere : public ::testing::TestWithParam<Subject> {};

constexpr int kMoments = 16;
constexpr std::chrono::seconds kLimit{75};  // silence, leaving and a machine of which others take most

/// Knows the leader of a run, and when it has begun.
class Leader {
 public:
  void heard(pid_t process) {
    const std::lock_guard lock(mutex_);
    process_ = process;
    changed_.notify_all();
  }
  pid_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLimit, [&] { return process_ != 0; });
    return process_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  pid_t process_ = 0;
};

std::vector<std::future<ProbeOutput>> start(const Subject& subject, Leader& leader) {
  std::vector<std::future<ProbeOutput>> running;
  const std::string at = fmt::format("--rendezvous=127.0.0.1:{}", free_port());
  for (int node = 0; node < subject.nodes; ++node) {
    auto words = with({subject.probe}, subject.words);
    if (subject.nodes > 1)
      words = with(words, {fmt::format("--rank={}", node), fmt::format("--world={}", subject.nodes), at,
                           "--token=0123456789abcdef0123456789abcdef"});
    running.push_back(std::async(std::launch::async, [words, node, &leader] {
      return run_and_hear(words, [&](const std::string&, pid_t process) {
        if (node == 0) leader.heard(process);
      });
    }));
  }
  return running;
}

TEST_P(StoppedAnywhere, ends_within_a_limit) {
  const Subject& subject = GetParam();
  for (int moment = 0; moment < kMoments; ++moment) {
    Leader leader;
    auto running = start(subject, leader);
    const pid_t process = leader.wait();
    const double after_s = subject.length_s * moment / kMoments;
    std::this_thread::sleep_for(std::chrono::duration<double>(after_s));
    const auto ranks = ranks_of(process, subject.program);
    if (!ranks.empty()) (void)kill(ranks.at(static_cast<std::size_t>(moment) % ranks.size()), SIGSTOP);
    const auto until = std::chrono::steady_clock::now() + kLimit;
    for (auto& one : running) {
      const bool ended = one.wait_until(until) == std::future_status::ready;
      EXPECT_TRUE(ended) << subject.name << " of which a rank was stopped after " << after_s << " s";
      if (!ended) (void)kill(process, SIGKILL);
      const ProbeOutput output = one.get();
      EXPECT_TRUE(output.exit_code == 0 || output.exit_code == 1) << output.exit_code;
      const Record record = record_in(subject.probe, output);
      const bool named = record.end.reason.find("stopped") != std::string::npos ||
                         record.end.reason.find("sign of life") != std::string::npos ||
                         record.end.reason.find("lost") != std::string::npos ||
                         record.end.reason.find("no spare is left for rank") != std::string::npos;  // a second loss
      EXPECT_TRUE(record.end.status == Status::complete || named) << after_s << " s: " << record.end.reason;
    }
  }
}

const std::vector<std::string> kSmall = {"--seq=16", "--micro-batch=1"};

INSTANTIATE_TEST_SUITE_P(
    of, StoppedAnywhere,
    ::testing::Values(Subject{"train_soak", probe_file("train_soak"), "train_step_rank",
                              with(kSmall, {"--quick", "--silence=2s", "--window=100ms", "--segment=60s"}), 6},
                      Subject{"train_step", probe_file("train_step"), "train_step_rank",
                              with(kSmall, {"--quick", "--ranks-per-node=3", "--steps=200", "--data=replicated"}), 4},
                      Subject{"train_step_of_two_nodes", probe_file("train_step"), "train_step_rank",
                              with(kSmall, {"--quick", "--path=loopback", "--steps=200"}), 4, 2},
                      Subject{"fault_resume", probe_file("fault_resume"), "fault_resume_rank",
                              with(kSmall, {"--heartbeat=200ms", "--local=/tmp", "--phases=reduce"}), 6}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay::train
