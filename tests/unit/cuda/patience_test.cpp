// What becomes of a probe whose GPU never finishes: its record ends, and nothing waits for the GPU any more.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

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

}  // namespace assay::cuda
