// What becomes of a probe whose GPU never finishes: its record ends, and nothing waits for the GPU any more.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "probes/collective/limits.h"
#include "probes/core/leaving.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/cuda/patience.h"

namespace assay::cuda {
namespace {

constexpr Metric kMetrics[] = {{.name = "rate", .unit = "1/s", .meaning = "any"}};
constexpr ProbeSpec kSpec{
    .name = "hanging", .measures = "Nothing.", .method = "None.", .source = "None.", .metrics = kMetrics};

/// Memory of a GPU that hangs: freeing it never comes back.
struct StuckMemory {
  StuckMemory() = default;
  StuckMemory(const StuckMemory&) = delete;
  StuckMemory& operator=(const StuckMemory&) = delete;
  ~StuckMemory() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
};

void wait_for_nothing() {
  const StuckMemory memory;
  poll_or_leave([] { return false; }, {0.2}, "waiting for a stream");
}

/// A thread in a call of the driver that never comes back.
[[noreturn]] void never_return() {
  const StuckMemory memory;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void measure(const Parameters&, Recorder& record) {
  record.measurement("rate", 1.0);
  const StuckMemory memory;
  std::jthread([] { wait_for_nothing(); }).join();
}

[[noreturn]] void run_hanging_probe(const std::string& out) {
  const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  dup2(file, STDOUT_FILENO);
  char name[] = "hanging";
  char* argv[] = {name, nullptr};
  _exit(probe_main(1, argv, kSpec, measure) + 40);
}

}  // namespace

TEST(patience, work_that_is_done_is_waited_for) {
  int asked = 0;
  poll_or_leave([&] { return ++asked == 5; }, {60}, "work");
  EXPECT_EQ(asked, 5);
}

TEST(patience_death_test, without_a_record_the_reason_is_on_stderr) {
  EXPECT_EXIT(wait_for_nothing(), testing::ExitedWithCode(kExitError),
              "error: waiting for a stream: the GPU is not done after 0.2 s and hangs; hint: ");
}

TEST(patience_death_test, the_record_of_a_probe_ends_with_the_reason_and_memory_is_not_freed) {
  const auto out = std::filesystem::temp_directory_path() / ("assay-hanging-" + std::to_string(getpid()));
  EXPECT_EXIT(run_hanging_probe(out), testing::ExitedWithCode(kExitError), "the GPU is not done");
  std::ostringstream text;
  text << std::ifstream(out).rdbuf();
  std::filesystem::remove(out);
  std::istringstream lines(text.str());
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  EXPECT_NE(last.find(R"("status":"error")"), std::string::npos) << text.str();
  EXPECT_NE(last.find("waiting for a stream: the GPU is not done after 0.2 s"), std::string::npos) << text.str();
}

TEST(deadline_death_test, of_a_kernel_that_never_ends_names_the_work_in_hand_though_the_thread_never_returns) {
  EXPECT_EXIT(
      {
        Deadline deadline;
        const auto due = deadline.set("step 7", {0.2}, [] { return InHand{.words = "call 3 of 9 (gemm, layer 0)"}; });
        never_return();
      },
      testing::ExitedWithCode(kExitError),
      "error: step 7: the GPU is not done after 0.2 s and hangs in call 3 of 9 .gemm, layer 0.; hint: look for Xid");
}

TEST(deadline_death_test, does_not_wait_for_a_driver_that_hangs_with_the_gpu) {
  EXPECT_EXIT(
      {
        Deadline deadline;
        const auto due = deadline.set("step 7", {0.2}, []() -> InHand { never_return(); });
        never_return();
      },
      testing::ExitedWithCode(kExitError), "error: step 7: the GPU is not done after 0.2 s and hangs; hint: ");
}

TEST(deadline_death_test, of_a_rank_tells_its_leader_and_whether_it_waits_for_others) {
  EXPECT_EXIT(
      {
        before_leaving(
            [](const std::string& reason, bool waits) { std::cerr << waits << " to the leader: " << reason; });
        Deadline deadline;
        const auto due = deadline.set("step 7", {0.2}, [] { return InHand{.words = "all_reduce", .waits = true}; });
        never_return();
      },
      testing::ExitedWithCode(kExitError),
      "1 to the leader: step 7: .* after 0.2 s and waits for others in all_reduce");
}

TEST(deadline_death_test, leaves_slow_work_alone_and_what_is_done_or_failed) {
  EXPECT_EXIT(
      {
        Deadline deadline;
        {
          const auto due = deadline.set("slow work", {3});
          std::this_thread::sleep_for(std::chrono::milliseconds(400));
        }
        try {
          const auto due = deadline.set("work that fails", {0.2});
          throw std::runtime_error("it failed");
        } catch (const std::runtime_error&) {
          std::this_thread::sleep_for(std::chrono::milliseconds(600));
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(pace, is_that_of_the_slowest_so_far_within_bounds) {
  collective::Pace pace;
  EXPECT_EQ(pace.limit({77}, 1000).count, 77);  // nothing was timed
  pace.took({0.01});
  EXPECT_EQ(pace.limit({77}).count, 10);  // seconds, for work of milliseconds
  pace.took({4}, 4);
  pace.took({0.5});
  EXPECT_EQ(pace.limit({77}).count, 20);  // a step of 1 s that takes 19 is slow, and no more
  EXPECT_EQ(pace.limit({77}, 3).count, 60);
  EXPECT_EQ(pace.limit({77}, 3, true).count, 120);  // kernels are loaded
  EXPECT_EQ(pace.limit({77}, 1000).count, 300);
}

}  // namespace assay::cuda
