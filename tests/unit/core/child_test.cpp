// A child process: how it ended, what it printed, and that no wait is longer than its deadline.
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "probes/core/child.h"
#include "probes/core/error.h"

namespace assay {
namespace {

constexpr Seconds kEnough{60};  // never reached by a child that ends by itself
constexpr const char* kShell = "/bin/sh";
constexpr const char* kReady = "child_test.ready";  // made by a child that runs

ChildOutcome shell(const std::string& script, const ChildOptions& options = {}, Seconds deadline = kEnough) {
  return run_child(kShell, {"-c", script}, deadline, options);
}

}  // namespace

TEST(child, what_it_prints_and_its_exit_code_are_returned) {
  const auto outcome = shell("printf hello; printf unseen >&2; exit 7");
  EXPECT_EQ(outcome.end, ChildEnd::exited);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.output, "hello");
}

TEST(child, more_output_than_a_pipe_holds_arrives_whole) {
  EXPECT_EQ(shell("head -c 1000000 /dev/zero").output.size(), 1'000'000U);
}

TEST(child, a_signal_that_ends_it_is_part_of_its_exit_code) {
  const auto outcome = shell("kill -KILL $$");
  EXPECT_EQ(outcome.end, ChildEnd::exited);
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
}

TEST(child, its_stdin_is_empty_and_its_directory_the_one_given) {
  EXPECT_EQ(shell("cat; pwd", {.directory = "/usr"}).output, "/usr\n");
}

TEST(child, a_log_takes_stdout_and_stderr) {
  const std::string log = testing::TempDir() + "child_test.log";
  EXPECT_EQ(shell("printf a; printf b >&2", {.log = log}).output, "");
  EXPECT_EQ(read_file(log).value(), "ab");
}

TEST(child, is_killed_at_its_deadline) {
  const auto outcome = shell("sleep 1000", {}, {0.1});
  EXPECT_EQ(outcome.end, ChildEnd::overdue);
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
}

TEST(child, is_killed_with_all_that_it_started) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::filesystem::remove(kReady);
  const auto outcome = shell(std::string("sleep 1000 & printf $!; : >") + kReady + "; wait",
                             {.stop = [] { return std::filesystem::exists(kReady); }});
  std::filesystem::remove(kReady);
  EXPECT_EQ(outcome.end, ChildEnd::stopped);
  const pid_t started = std::stoi(outcome.output);
  int status = 0;
  ASSERT_EQ(waitpid(started, &status, 0), started);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(child, that_prints_too_much_is_killed) {
  const auto outcome = shell("while :; do printf 0123456789; done", {.max_output = 100});
  EXPECT_EQ(outcome.end, ChildEnd::flooded);
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
}

TEST(child, is_killed_when_it_is_to_stop) {
  EXPECT_EQ(shell("sleep 1000", {.stop = [] { return true; }}).end, ChildEnd::stopped);
}

TEST(child, one_that_it_leaves_behind_is_not_waited_for) {
  const auto outcome = shell("sleep 1000 & printf $!");
  EXPECT_EQ(outcome.end, ChildEnd::exited);
  EXPECT_EQ(kill(std::stoi(outcome.output), SIGKILL), 0);
}

TEST(child, that_cannot_be_started_is_an_error_with_the_cause) {
  const auto cause = [](const std::string& program, const ChildOptions& options) {
    try {
      (void)run_child(program, {}, kEnough, options);
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    return 0;
  };
  EXPECT_EQ(cause("/no/such/program", {}), ENOENT);
  EXPECT_EQ(cause("/etc/passwd", {}), EACCES);
  EXPECT_EQ(cause(kShell, {.directory = "/no/such/directory"}), ENOENT);
}

TEST(find_program, finds_executable_files_in_absolute_directories_alone) {
  EXPECT_EQ(find_program("sh").has_value(), true);
  EXPECT_EQ(find_program("no-such-program"), std::nullopt);
  EXPECT_EQ(find_program("."), std::nullopt);
}

}  // namespace assay
